"""A shipped schedule as a Python module, and the module that chooses among those of several targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from autotune_loop.schedule.model import Schedule
from autotune_loop.schedule.print_python import print_python
from autotune_loop.shipping.files.cpp_dispatch import DispatchedSchedule
from autotune_loop.shipping.files.func_table import FuncRow
from autotune_loop.shipping.files.python_check import PYTHON_CHECK
from autotune_loop.shipping.provenance import ShippedProvenance

_IMPORTS = "import importlib.metadata\nimport re\nimport warnings\n\n"


def print_python_module(schedule: Schedule, name: str, provenance: ShippedProvenance, funcs: Sequence[FuncRow]) -> str:
    """A module with `apply_schedule(pipeline, target, strict=False)`, which first makes sure that the pipeline has
    these Funcs. It needs Halide and no other file; what it was made with is in constants.

    Raises:
        GeneratorError: the schedule does not hold together.
    """
    rows = "".join(f'    ("{row.name}", 0x{row.definition:016X}),\n' for row in funcs)
    constants = "".join(f"{key.upper()} = {_literal(value)}\n" for key, value in provenance.constants().items())
    text = print_python(
        replace(schedule, provenance=None, function_name=name),
        comment=provenance.comment(),
        before=(
            f'NAME = "{name}"\n{constants}'
            "# The Funcs in the order of Pipeline.get_func, with hashes of their definitions.\n"
            f"FUNCS = (\n{rows})\n\n\n{PYTHON_CHECK.rstrip()}\n\n"
        ),
        checks=["check_pipeline(pipeline, strict)"],
    )
    return text.replace("import halide as hl\n", f"{_IMPORTS}import halide as hl\n", 1)


def _literal(value: str | float | bool | None) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def print_python_dispatch(name: str, schedules: Sequence[DispatchedSchedule]) -> str:
    """A module with `apply_schedule`, which takes the schedule that fits the target best or raises, and
    `try_apply_schedule`, which returns False where none fits.
    """
    modules = ", ".join(schedule.module_name for schedule in schedules)
    rows = "".join(f'    ("{schedule.target}", {schedule.module_name}.apply_schedule),\n' for schedule in schedules)
    listed = ", ".join(schedule.target for schedule in schedules)
    return (
        f'"""Schedules of {name} for {listed}. MACHINE GENERATED -- DO NOT EDIT."""\n\n'
        "import halide as hl\n\n"
        f"try:\n    from . import {modules}\nexcept ImportError:\n    import {modules}\n\n"
        f"SCHEDULES = (\n{rows})\n\n\n{_DISPATCH.replace('@NAME@', name)}"
    )


_DISPATCH = '''\
def choose_schedule(target):
    """The function of the schedule that fits best, or None: of the architecture, with no feature that `target` lacks,
    best of its operating system, then with the most features."""
    best, best_score = None, -1
    for text, function in SCHEDULES:
        wanted = hl.Target(text)
        if (wanted.arch, wanted.bits) != (target.arch, target.bits):
            continue
        features = [f for f in hl.TargetFeature.__members__.values() if f != hl.TargetFeature.FeatureEnd]
        asked = [feature for feature in features if wanted.has_feature(feature)]
        score = (len(features) if wanted.os == target.os else 0) + len(asked)
        if score > best_score and all(target.has_feature(feature) for feature in asked):
            best, best_score = function, score
    return best


def try_apply_schedule(pipeline, target, strict=False):
    """Apply the schedule that fits `target` best. False, and nothing is done, where none does."""
    function = choose_schedule(target)
    if function is not None:
        function(pipeline, target, strict)
    return function is not None


def apply_schedule(pipeline, target, strict=False):
    """Apply the schedule that fits `target` best.

    Raises RuntimeError where none does, or where the pipeline is not the one it was made for; with `strict` also where
    a definition has changed.
    """
    if not try_apply_schedule(pipeline, target, strict):
        listed = ", ".join(text for text, _ in SCHEDULES)
        raise RuntimeError(
            f"There is no schedule of @NAME@ for {target.to_string()}; there are some for {listed}. Tune it for that "
            "target, or call try_apply_schedule and schedule it yourself where that returns False."
        )
'''
