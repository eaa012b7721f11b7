"""Floating point on Hexagon's vector unit, which most versions lack: Halide's own search does not know that."""

from __future__ import annotations

import re

from halide_autotune.autotune_loop.events import Listener, Notice
from halide_autotune.autotune_loop.execute.executor import Executor
from halide_autotune.autotune_loop.execute.tasks.build_tasks import HasHvxFloats
from halide_autotune.autotune_loop.search.plan import greedy_point
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.autotune_loop.technique_name import TechniqueName
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.run import GeneratorFailure, GeneratorFailureReason
from halide_autotune.targets.profile.halide_target import parse_halide_target

_HVX_VERSION = re.compile(r"hvx_v([0-9]+)")
_FIRST_VERSION_WITH_FLOATS = 68
# Floats are not the cause of these: without vectors of floats, Halide's code generator fails at once.
_NO_FAULT_OF_FLOATS = {
    GeneratorFailureReason.TIMED_OUT,
    GeneratorFailureReason.OUT_OF_MEMORY,
    GeneratorFailureReason.STOPPED,
}


def has_float_vectors(context: RunContext) -> bool:
    """Whether kernels may have vectors of floats on a run's devices."""
    in_emulator = any(device.kind == "qemu" for device in context.devices)
    return may_have_float_vectors(context.profile.halide_target, in_emulator=in_emulator)


def may_have_float_vectors(halide_target: str, *, in_emulator: bool = False) -> bool:
    """Whether kernels may have vectors of floats: HVX before v68 has none, and QEMU cannot run those of later ones."""
    target = parse_halide_target(halide_target)
    if target.architecture != "hexagon":
        return True
    versions = [int(version[1]) for word in target.features if (version := _HVX_VERSION.fullmatch(word))]
    return max(versions, default=0) >= _FIRST_VERSION_WITH_FLOATS and not in_emulator


def check_hvx_floats(
    executor: Executor, store: RunStore, context: RunContext, task_index: int, listen: Listener
) -> None:
    """Tell, or refuse, a pipeline whose floats Halide's search would put into vectors that nothing can run.

    Compiles one cheap schedule, because floats outside the vectors are no problem. Does nothing for targets other than
    Hexagon.

    Raises:
        GeneratorError: only Halide's own search is to propose schedules.
    """
    if has_float_vectors(context):
        return
    folder = context.workspace.work_folder / "floats" / str(task_index)
    found = executor.submit(HasHvxFloats(folder, task_index, greedy_point(0, store.updated_weights))).result()
    if isinstance(found, GeneratorFailure) and found.reason in _NO_FAULT_OF_FLOATS:
        return
    if not found:
        return
    name = context.tasks[task_index].reference.name
    text = f"Generator {name} computes with floats, and the vectors of {context.profile.name} cannot hold them here"
    if set(context.spec.options.search.technique) == {TechniqueName.SAMPLING}:
        raise GeneratorError(
            f"{text}.", next_step="Allow other techniques than sampling, or use integers (fixed point)."
        )
    listen(Notice(f"{text}: its schedules have vectors only where no float is."))
