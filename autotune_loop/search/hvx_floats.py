"""Floating point on Hexagon's vector unit, which most versions lack: found out before the search crashes on it."""

from __future__ import annotations

import re

from autotune_loop.execute.build_tasks import HasHvxFloats
from autotune_loop.execute.executor import Executor
from autotune_loop.search.plan import greedy_point
from autotune_loop.specification.run_context import RunContext
from autotune_loop.store.run_store import RunStore
from targets.errors import GeneratorError
from targets.generator.run import GeneratorFailure, GeneratorFailureReason
from targets.profile.halide_target import parse_halide_target

_HVX_VERSION = re.compile(r"hvx_v([0-9]+)")
_FIRST_VERSION_WITH_FLOATS = 68
# They do not come from floats, which end Halide's code generator at once where there are no vectors of them.
_NO_FAULT_OF_FLOATS = {GeneratorFailureReason.TIMED_OUT, GeneratorFailureReason.OUT_OF_MEMORY}


def check_hvx_floats(executor: Executor, store: RunStore, context: RunContext, task_index: int) -> None:
    """Make sure that HVX can run what an autoscheduler makes of a pipeline that computes with floats, if only in part.

    A cheap schedule is compiled for that: floats that are outside the vectors are no trouble. Does nothing for other
    targets than Hexagon.

    Raises:
        GeneratorError: the schedules of this pipeline cannot be compiled, or not be run by the emulator.
    """
    target = parse_halide_target(context.profile.halide_target)
    if target.architecture != "hexagon":
        return
    versions = [int(version[1]) for word in target.features if (version := _HVX_VERSION.fullmatch(word))]
    has_floats = max(versions, default=0) >= _FIRST_VERSION_WITH_FLOATS
    folder = context.workspace.work_folder / "floats" / str(task_index)
    point = greedy_point(0, store.updated_weights)
    found = executor.submit(HasHvxFloats(folder, task_index, point)).result()
    name = context.tasks[task_index].reference.name
    if isinstance(found, GeneratorFailure):
        if found.reason is GeneratorFailureReason.STOPPED:
            return
        if not has_floats:
            if found.reason in _NO_FAULT_OF_FLOATS:
                return
            raise GeneratorError(
                f"Generator {name} computes with floating point, and {context.profile.name}'s vector unit has none:"
                " its schedules do not compile.",
                next_step="Compute with integers (fixed point), or tune for HVX v68 on a device that has it.",
            )
    # What takes too long to compile may have vectors of floats, too.
    if found and any(device.kind == "qemu" for device in context.devices):
        raise GeneratorError(
            f"Generator {name} computes vectors of floating point, which QEMU's Hexagon cannot run.",
            next_step="Compute with integers (fixed point) to tune here; sdk build needs no emulator.",
        )
