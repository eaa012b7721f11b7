"""A shipped schedule as a C++ header, and the header that chooses among those of several targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from halide_autotune.autotune_loop.schedule.model import Schedule
from halide_autotune.autotune_loop.schedule.print_header import print_header
from halide_autotune.autotune_loop.shipping.files.func_table import FuncRow
from halide_autotune.autotune_loop.shipping.provenance import Fact, Provenance, provenance_comment
from halide_autotune.autotune_loop.shipping.ship_manifest import ShippedSchedule
from halide_autotune.targets.pipeline.preparation import PIPELINE_RESET_HEADER

_CHECK = Path(__file__).parent / "pipeline_check.h"


def print_cpp_header(schedule: Schedule, name: str, provenance: Provenance, funcs: Sequence[FuncRow]) -> str:
    """A header with `apply_schedule_<name>`, which first checks that the pipeline has these Funcs.

    It needs no other file. The namespace `<name>_provenance` has the provenance as constants.

    Raises:
        GeneratorError: the schedule is inconsistent, or `name` is not a function name.
    """
    check = f'::halide_sdk_1::check_pipeline(pipeline, "{name}", {name}_provenance::halide_version,'
    return print_header(
        replace(schedule, provenance=None),
        name,
        comment=provenance_comment(provenance),
        before=f"{pipeline_check_text()}\n{_embedded(PIPELINE_RESET_HEADER)}\n{_constants(name, provenance, funcs)}\n",
        checks=[
            check,
            f"                                {name}_provenance::funcs(), HALIDE_SDK_IS_STRICT);",
            "// The generator may have scheduled the pipeline itself.",
            "::halide_sdk_1::reset_pipeline(pipeline);",
        ],
    )


def pipeline_check_text() -> str:
    """The C++ code that checks pipelines; one file may contain several copies."""
    return _embedded(_CHECK)


def _embedded(header: Path) -> str:
    return header.read_text(encoding="utf-8").replace('#include "Halide.h"\n\n', "")


def _constants(name: str, provenance: Provenance, funcs: Sequence[FuncRow]) -> str:
    rows = "".join(f'        {{"{row.name}", 0x{row.definition:016x}u, 0x{row.domains:016x}u}},\n' for row in funcs)
    declarations = "".join(_constant(key, value) for key, value in provenance.items())
    return (
        f"namespace {name}_provenance {{\n\n"
        f"{declarations}\n"
        "// The Funcs in the order of Pipeline::get_func, with hashes of their definitions and reduction domains.\n"
        "inline std::vector<halide_sdk_1::FuncRow> funcs() {\n"
        f"    return {{\n{rows}    }};\n"
        "}\n\n"
        f"}}  // namespace {name}_provenance\n"
    )


def _constant(key: str, value: Fact) -> str:
    match value:
        case bool():
            return f"inline constexpr bool {key} = {'true' if value else 'false'};\n"
        case int():
            return f"inline constexpr int {key} = {value};\n"
        case float():
            return f"inline constexpr double {key} = {value!r};\n"
        case None:
            return f"inline constexpr double {key} = 0;  // it has none\n"
        case _:
            return f'inline constexpr const char *{key} = "{value}";\n'


def print_cpp_dispatch(name: str, schedules: Sequence[ShippedSchedule]) -> str:
    """A header with `apply_schedule_<name>`, which applies the schedule that fits the target best or stops the build,
    and `try_apply_schedule_<name>`, which returns false if none fits. With a size that has schedules of its own they
    apply that of the target, where it has one.
    """
    general = [schedule for schedule in schedules if not schedule.for_size]
    includes = "".join(f'#include "{schedule.header}"\n' for schedule in schedules)
    targets = ", ".join(f'"{schedule.dispatch_target}"' for schedule in general)
    functions = ", ".join(f"apply_schedule_{schedule.function_name}" for schedule in general)
    return (
        _DISPATCH.replace("@INCLUDES@", includes)
        .replace("@CHECK@", pipeline_check_text())
        .replace("@TARGETS@", targets)
        .replace("@FUNCTIONS@", functions)
        .replace("@SIZES@", _of_sizes(general, schedules))
        .replace("@LISTED@", ", ".join(schedule.dispatch_target for schedule in general))
        .replace("@NAME@", name)
    )


def _of_sizes(general: Sequence[ShippedSchedule], schedules: Sequence[ShippedSchedule]) -> str:
    """The statements that choose a schedule for one size."""
    sizes = sorted({schedule.for_size for schedule in schedules if schedule.for_size})
    known = " || ".join(["size.empty()", *(f'size == "{size}"' for size in sizes)])
    there = f"; there are some for {', '.join(sizes)}" if sizes else ", nor for any other single one"
    lines = [
        f"_halide_user_assert({known})",
        f'    << "There is no schedule of @NAME@ for the size " << size << "{there}.\\n";',
    ]
    for index, of_target in enumerate(general):
        for one in schedules:
            if one.for_size and one.target_profile == of_target.target_profile:
                function = f"apply_schedule_{one.function_name}"
                lines.append(f'if (chosen == {index} && size == "{one.for_size}") schedule = {function};')
    return "".join(f"    {line}\n" for line in lines)


_DISPATCH = """\
#ifndef @NAME@_SCHEDULES_H
#define @NAME@_SCHEDULES_H

// MACHINE GENERATED -- DO NOT EDIT
// Schedules of @NAME@ for @LISTED@.

#include "Halide.h"

@INCLUDES@
@CHECK@
// Apply the schedule that fits `target` best. False, and nothing is done, where none does. With a `size` such as
// "640x480" it is the target's schedule for that size, where it has one.
inline bool try_apply_schedule_@NAME@(
    ::Halide::Pipeline pipeline,
    ::Halide::Target target,
    const std::string &size = ""
) {
    const int chosen = ::halide_sdk_1::choose_target({@TARGETS@}, target);
    if (chosen < 0) return false;
    void (*const schedules[])(::Halide::Pipeline, ::Halide::Target) = {@FUNCTIONS@};
    void (*schedule)(::Halide::Pipeline, ::Halide::Target) = schedules[chosen];
@SIZES@    schedule(pipeline, target);
    return true;
}

inline void apply_schedule_@NAME@(
    ::Halide::Pipeline pipeline,
    ::Halide::Target target,
    const std::string &size = ""
) {
    _halide_user_assert(try_apply_schedule_@NAME@(pipeline, target, size))
        << "There is no schedule of @NAME@ for " << target.to_string() << "; there are some for @LISTED@. "
        << "Tune it for that target, or call try_apply_schedule_@NAME@ and schedule it yourself "
        << "where that returns false.\\n";
}

#endif  // @NAME@_SCHEDULES_H
"""
