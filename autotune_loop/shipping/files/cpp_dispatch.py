"""One header for all targets that a generator has a shipped schedule for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from autotune_loop.shipping.files.cpp_header import pipeline_check_text


@dataclass(frozen=True)
class DispatchedSchedule:
    """One target's schedule.

    Attributes:
        function_name: the <name> of its `apply_schedule_<name>`.
        target: Halide's target string with what decides whether it fits.
        file_name: its header; beside this one.
        module_name: its Python module; beside this one.
    """

    function_name: str
    target: str
    file_name: str
    module_name: str


def print_cpp_dispatch(name: str, schedules: Sequence[DispatchedSchedule]) -> str:
    """A header with `apply_schedule_<name>`, which takes the schedule that fits the target best or stops, and
    `try_apply_schedule_<name>`, which returns false where none fits.
    """
    includes = "".join(f'#include "{schedule.file_name}"\n' for schedule in schedules)
    targets = ", ".join(f'"{schedule.target}"' for schedule in schedules)
    functions = ", ".join(f"apply_schedule_{schedule.function_name}" for schedule in schedules)
    listed = ", ".join(schedule.target for schedule in schedules)
    return (
        f"#ifndef {name}_SCHEDULES_H\n"
        f"#define {name}_SCHEDULES_H\n\n"
        "// MACHINE GENERATED -- DO NOT EDIT\n"
        f"// Schedules of {name} for {listed}.\n\n"
        '#include "Halide.h"\n\n'
        f"{includes}\n"
        f"{pipeline_check_text()}\n"
        "// Apply the schedule that fits `target` best. False, and nothing is done, where none does.\n"
        f"inline bool try_apply_schedule_{name}(\n"
        "    ::Halide::Pipeline pipeline,\n"
        "    ::Halide::Target target\n"
        ") {\n"
        f"    const int chosen = ::halide_sdk_1::choose_target({{{targets}}}, target);\n"
        "    if (chosen < 0) return false;\n"
        f"    void (*const schedules[])(::Halide::Pipeline, ::Halide::Target) = {{{functions}}};\n"
        "    schedules[chosen](pipeline, target);\n"
        "    return true;\n"
        "}\n\n"
        f"inline void apply_schedule_{name}(\n"
        "    ::Halide::Pipeline pipeline,\n"
        "    ::Halide::Target target\n"
        ") {\n"
        f"    _halide_user_assert(try_apply_schedule_{name}(pipeline, target))\n"
        f'        << "There is no schedule of {name} for " << target.to_string() << "; there are some for {listed}. "\n'
        '        << "Tune it for that target, or call try_apply_schedule_'
        f'{name} and schedule it yourself where that returns false.\\n";\n'
        "}\n\n"
        f"#endif  // {name}_SCHEDULES_H\n"
    )
