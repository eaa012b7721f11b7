"""A shipped schedule as a C++ header: where it comes from, what it was made for, the schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from autotune_loop.schedule.model import Schedule
from autotune_loop.schedule.print_header import print_header
from autotune_loop.shipping.files.func_table import FuncRow
from autotune_loop.shipping.provenance import ShippedProvenance

_CHECK = Path(__file__).parent / "pipeline_check.h"


def print_cpp_header(schedule: Schedule, name: str, provenance: ShippedProvenance, funcs: Sequence[FuncRow]) -> str:
    """A header with `apply_schedule_<name>`, which first makes sure that the pipeline has these Funcs.

    It needs no other file. What it was made with is in the namespace `<name>_provenance`, too.

    Raises:
        GeneratorError: the schedule does not hold together, or `name` cannot be a function's.
    """
    check = f'::halide_sdk_1::check_pipeline(pipeline, "{name}", {name}_provenance::halide_version,'
    return print_header(
        replace(schedule, provenance=None),
        name,
        comment=provenance.comment(),
        before=f"{pipeline_check_text()}\n{_constants(name, provenance, funcs)}\n",
        checks=[check, f"                                {name}_provenance::funcs(), HALIDE_SDK_IS_STRICT);"],
    )


def pipeline_check_text() -> str:
    """The C++ that headers check pipelines with; any number of copies may meet in one file."""
    return _CHECK.read_text(encoding="utf-8").replace('#include "Halide.h"\n\n', "")


def _constants(name: str, provenance: ShippedProvenance, funcs: Sequence[FuncRow]) -> str:
    rows = "".join(f'        {{"{row.name}", 0x{row.definition:016x}u, 0x{row.domains:016x}u}},\n' for row in funcs)
    declarations = "".join(_constant(key, value) for key, value in provenance.constants().items())
    return (
        f"namespace {name}_provenance {{\n\n"
        f"{declarations}\n"
        "// The Funcs in the order of Pipeline::get_func, with hashes of their definitions and reduction domains.\n"
        "inline std::vector<halide_sdk_1::FuncRow> funcs() {\n"
        f"    return {{\n{rows}    }};\n"
        "}\n\n"
        f"}}  // namespace {name}_provenance\n"
    )


def _constant(key: str, value: str | int | float | bool | None) -> str:
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
