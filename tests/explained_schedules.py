"""Schedules as they are explained, for tests."""

from __future__ import annotations

from pathlib import Path

from halide_autotune.autotune_loop.explain.explained import (
    ExplainedFunc,
    ExplainedSchedule,
    Explanation,
    MachineLimits,
)
from halide_autotune.autotune_loop.explain.explanation_file import write_explanations
from halide_autotune.autotune_loop.report.recorded_run import read_recorded_run
from halide_autotune.devices.timing.func_counts import Accesses, FuncCounts


def counts(
    name: str,
    *,
    within: str = "",
    pieces: int = 1,
    extents: tuple[int, ...] = (100, 10),
    points: int = 1000,
    lanes: int = 8,
    loaded_bytes: int = 9000,
    tasks: int = 0,
) -> FuncCounts:
    """A Func of bytes, stored and loaded in vectors of so many lanes."""
    loaded = Accesses(loaded_bytes // lanes, loaded_bytes, loaded_bytes)
    stored = Accesses(points // lanes, points, points)
    return FuncCounts(name, within, loaded, stored, points, pieces, extents, int(tasks > 0), tasks)


def func(
    of: FuncCounts,
    time_s: float | None = None,
    *,
    threads: float = 4.0,
    needed: int | None = 1000,
    operations: float | None = 5000.0,
    is_output: bool = False,
) -> ExplainedFunc:
    """A Func of an explained schedule; without a time it has no threads."""
    return ExplainedFunc(of.name, is_output, time_s, None if time_s is None else threads, of, needed, operations)


def schedule(label: str, *funcs: ExplainedFunc, argument_bytes: int = 4000) -> ExplainedSchedule:
    """A schedule whose call takes what its Funcs take."""
    times_s = [one.time_s for one in funcs if one.time_s is not None]
    return ExplainedSchedule(label, sum(times_s) if times_s else None, funcs, argument_bytes)


def explain_folder(folder: Path, *, name: str = "blur", sha256: str | None = None) -> None:
    """Explain the winner of a run that `write_run_folder` has written.

    Args:
        name: of a Func.
        sha256: of another header than the run's.
    """
    headers = read_recorded_run(folder).headers
    out = counts("out", tasks=10)
    inner = counts(name, within="out", pieces=40, extents=(32, 10), points=1280)
    before = schedule("the default", func(out, 8e-3, is_output=True))
    after = schedule("the tuned schedule", func(inner, 3e-3), func(out, 1e-3, is_output=True))
    limits = MachineLimits(bytes_per_s=10e9, operations_per_s=200e9)
    told = Explanation("pi", "wall", 4, (before, after), limits, 2**20, (f"{name}: inside.",), "Memory is <full>.")
    write_explanations(folder, {index: (sha256 or header.sha256, [told]) for index, header in headers.items()})
