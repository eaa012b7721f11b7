"""Events of a run of two rounds, as a real one sends them, and its result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from halide_autotune.autotune_loop.events import (
    BatchDone,
    BestImproved,
    BuildProgress,
    Event,
    Notice,
    PlayOff,
    RunLength,
    RunStarted,
    SampleFailed,
    SampleMeasured,
    SearchProgress,
    Trained,
)
from halide_autotune.autotune_loop.run.result import Outcome, RunTotals, TunedSchedule, TuneResult
from halide_autotune.autotune_loop.store.published import Published, ScheduleTime, SpeedUp
from halide_autotune.sdk.display.run_progress import RunProgress

STARTED = RunStarted(
    generator="blur",
    target="arm64",
    device="qemu",
    clock="emulated",
    parallelism=4,
    run_folder="/runs/blur-arm64-1",
    length=RunLength(batch_size=4, rounds=2, tasks=1, budget_s=None),
    resumed=False,
)


def started(rounds: int = 2, tasks: int = 1, budget_s: float | None = None, **changes: Any) -> RunStarted:
    """The beginning of another run."""
    return replace(STARTED, length=RunLength(4, rounds, tasks, budget_s), **changes)


def measured(
    round_index: int, sample_index: int, median_ms: float, predicted_ms: float | None, done: int
) -> SampleMeasured:
    first = round_index == 0 and sample_index == 0
    return SampleMeasured(
        round_index=round_index,
        task_index=0,
        sample_index=sample_index,
        origin="full beam search" if first else "random search",
        median_ms=median_ms,
        predicted_ms=predicted_ms,
        clock="emulated",
        done=done,
        wanted=4,
    )


def run_events(clock: str = "emulated") -> list[Event]:
    """The events, in order."""
    events: list[Event] = [
        STARTED,
        Notice("The full beam search failed: out of [memory]. A greedy one takes its place.", True),
        SearchProgress(0, 0, 3, 6, 1, 0),
        SampleFailed(0, 0, None, "search", "timed out", "The search did not end within 60 s."),
        SampleFailed(0, 0, None, "search", "timed out", "The search did not end within 60 s."),
        SearchProgress(0, 0, 6, 6, 2, 2),
        BuildProgress(0, 0, 2, 1, 3),
        BestImproved(0, "batch_0_0/0", 8.0, 8.0, "emulated"),
        measured(0, 0, 8.0, 3.0, 1),
        SearchProgress(1, 0, 2, 8, 0, 0),
        BestImproved(0, "batch_0_0/1", 4.0, 8.0, "emulated"),
        measured(0, 1, 4.0, 1.0, 2),
        measured(0, 2, 16.0, 2.0, 3),
        SampleFailed(0, 0, 3, "measure", "crashed", "The kernel was ended\nby signal 11."),
        Trained(0, True, "enough", 3, 0.25, None, 0.75),
        BatchDone(0, 0, 3, 1, {"search": 2.0, "choose": 0.001, "measure": 1.0}),
        Trained(1, False, "worse", 7, 0.25, 0.75, 0.5),
        PlayOff(0, 2, 1, 5),
        PlayOff(0, 2, 2, 5),
    ]
    return [
        replace(event, clock=clock) if isinstance(event, RunStarted | SampleMeasured | BestImproved) else event
        for event in events
    ]


class StandingClock:
    """Monotonic seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def progress_after(events: Iterable[Event], step_s: float = 1.0) -> RunProgress:
    """The progress after these events, one every `step_s`."""
    clock = StandingClock()
    progress = RunProgress(clock)
    for event in events:
        clock.now_s += step_s
        progress.add(event)
    return progress


TUNED = TunedSchedule(
    parameters={},
    generator="blur",
    header=Path("/runs/blur-arm64-1/samples/best.blur.schedule.h"),
    default_description="Adams2019, full beam search, Halide's own weights",
    published=Published(
        sample="batch_0_0/1",
        symbol="blur_r0_a0_s1",
        confirmed=True,
        reason="faster",
        message="batch_0_0/1 is faster.",
        default=ScheduleTime(8.0, 0.08, (7.9, 8.1), 8),
        tuned=ScheduleTime(4.0, 0.02, (3.9, 4.1), 8),
        speed_up=SpeedUp(2.05, "default", 2.02, 2.08),
    ),
)
RESULT = TuneResult(
    outcome=Outcome.FINISHED,
    generator="blur",
    target="arm64",
    device="qemu",
    clock="emulated",
    tuned=(TUNED,),
    run_folder=Path("/runs/blur-arm64-1"),
    weights=Path("/runs/blur-arm64-1/samples/updated.weights"),
    totals=RunTotals(
        rounds=2,
        samples_timed=7,
        failures={"search: timed out": 2, "measure: crashed": 1},
        not_done=0,
        stages_s={"search": 2.0},
        duration_s=95.0,
    ),
)
