"""Code that a killed process or a full disk has taken with it, built again from what is left of a candidate."""

from __future__ import annotations

import contextlib
from concurrent.futures import Future
from pathlib import Path

from halide_autotune.autotune_loop.candidate import Built, BuiltObject, Candidate, ParameterPoint, SearchPoint
from halide_autotune.autotune_loop.execute.executor import Executor
from halide_autotune.autotune_loop.execute.tasks.build_tasks import BuildObject, BuildWithHeader
from halide_autotune.autotune_loop.execute.tasks.own_schedule import BuildOwn
from halide_autotune.autotune_loop.execute.tasks.schedule_tasks import BuildSchedule
from halide_autotune.autotune_loop.schedule.as_json import print_json
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.targets.build.executable import KernelObject
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.run import GeneratorFailure, GeneratorFailureReason
from halide_autotune.targets.schedule.header import read_schedule


def rebuild(executor: Executor, store: RunStore, candidate: Candidate) -> Built | GeneratorFailure:
    """Build a candidate from its parameters or its schedule header, which is cheap, or else by repeating its search."""
    folder, task_index, symbol = store.objects / candidate.symbol, candidate.task_index, candidate.symbol
    if isinstance(candidate.point, ParameterPoint):
        made = executor.submit(BuildOwn(folder, task_index, symbol, candidate.parameters)).result()
        return made if isinstance(made, GeneratorFailure) else store.keep_build(candidate, made)
    text = _header_text(store.schedule_path(store.samples / candidate.sample))
    if text:
        applied = executor.submit(BuildWithHeader(folder, task_index, symbol, text, candidate.parameters)).result()
        if isinstance(applied, BuiltObject):
            return Built(candidate, KernelObject(symbol, applied.object_path))
        if isinstance(applied, GeneratorFailure) and not isinstance(candidate.point, SearchPoint):
            return applied
    if not isinstance(candidate.point, SearchPoint):
        return _lost(candidate)
    again = BuildObject(folder, task_index, candidate.point, symbol, candidate.schedule_sha256)
    result = executor.submit(again).result()
    return result if isinstance(result, GeneratorFailure) else store.keep_build(candidate, result)


def submit_again(
    executor: Executor, store: RunStore, candidate: Candidate, limit_s: float
) -> Future[BuiltObject | GeneratorFailure]:
    """Start to build a candidate again, from what is left of it; a search is repeated where its header is not enough.

    Args:
        limit_s: for one that is built from its schedule.
    """
    folder, symbol = store.objects / candidate.symbol, candidate.symbol
    task_index, point = candidate.task_index, candidate.point
    if isinstance(point, ParameterPoint):
        return executor.submit(BuildOwn(folder, task_index, symbol, candidate.parameters))
    text = _header_text(store.schedule_path(store.samples / candidate.sample))
    if text and not candidate.parameters:
        # What only Halide can read is searched again.
        with contextlib.suppress(GeneratorError):
            schedule = print_json(parse_schedule(text))
            return executor.submit(BuildSchedule(folder, task_index, symbol, schedule, limit_s))
    if isinstance(point, SearchPoint):
        return executor.submit(BuildObject(folder, task_index, point, symbol, candidate.schedule_sha256))
    lost: Future[BuiltObject | GeneratorFailure] = Future()
    lost.set_result(_lost(candidate))
    return lost


def _lost(candidate: Candidate) -> GeneratorFailure:
    message = f"The schedule of {candidate.sample} is missing or damaged."
    return GeneratorFailure(GeneratorFailureReason.FAILED, message, "", 0.0)


def _header_text(path: Path) -> str:
    """The header; empty where it is missing or damaged."""
    try:
        return read_schedule(path)
    except GeneratorError:
        return ""
