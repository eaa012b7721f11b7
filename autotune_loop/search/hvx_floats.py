"""Floating point on Hexagon's vector unit: most versions lack it, which is detected before the search crashes."""

from __future__ import annotations

import re

from autotune_loop.execute.executor import Executor
from autotune_loop.execute.tasks.build_tasks import HasHvxFloats
from autotune_loop.search.plan import greedy_point
from autotune_loop.specification.run_context import RunContext
from autotune_loop.store.run_store import RunStore
from targets.errors import GeneratorError
from targets.generator.run import GeneratorFailure, GeneratorFailureReason
from targets.profile.halide_target import parse_halide_target

_HVX_VERSION = re.compile(r"hvx_v([0-9]+)")
_FIRST_VERSION_WITH_FLOATS = 68
# Floats are not the cause of these: without vectors of floats, Halide's code generator fails at once.
_NO_FAULT_OF_FLOATS = {GeneratorFailureReason.TIMED_OUT, GeneratorFailureReason.OUT_OF_MEMORY}


def check_hvx_floats(executor: Executor, store: RunStore, context: RunContext, task_index: int) -> None:
    """Check that HVX can run the schedules of a pipeline that computes with floats.

    Compiles one cheap schedule, because floats outside the vectors are no problem. Does nothing for targets other than
    Hexagon.

    Raises:
        GeneratorError: the schedules of this pipeline cannot be compiled, or the emulator cannot run them.
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
                f"Generator {name} does not compile: it computes with floating point, which the vector unit of"
                f" {context.profile.name} does not support.",
                next_step="Use integers (fixed point), or tune for HVX v68 on a device that has it.",
            )
    # A schedule that takes too long to compile may also have vectors of floats.
    if found and any(device.kind == "qemu" for device in context.devices):
        raise GeneratorError(
            f"Generator {name} computes with vectors of floats, which QEMU's Hexagon emulator does not support.",
            next_step="Use integers (fixed point), or tune on a device. `sdk build` works without an emulator.",
        )
