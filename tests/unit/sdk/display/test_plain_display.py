"""A run as lines of a log."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.events import BatchDone, BestImproved, Notice, PlayOff, SampleMeasured
from halide_autotune.autotune_loop.store.run_database import RunDatabase
from halide_autotune.sdk.display.display import STOPPING
from halide_autotune.sdk.display.event_lines import event_lines
from halide_autotune.sdk.display.plain_display import PlainDisplay
from halide_autotune.sdk.display.run_progress import RunProgress
from tests.recorded_run_folder import write_run_folder
from tests.unit.sdk.display.recorded_run import STARTED, StandingClock, progress_after, run_events, started

EMULATED = "emul"

DETAILS = (
    f"  fastest 4.000 ms {EMULATED}, median 8.000 ms {EMULATED}; rank correlation 0.50; search 2.0 s, measure 1.0 s"
)
ROUND = f"round 1/2  best 4.000 ms {EMULATED} (2.00×)  3 timed  1 failed  180/min"


def lines_of(clock: str = "emulated", *, verbose: bool = False) -> list[str]:
    passing = StandingClock()
    progress = RunProgress(passing)
    passing.now_s += 1.0
    lines = []
    for event in run_events(clock):
        progress.add(event)
        lines += event_lines(event, progress, verbose=verbose)
    return lines


def test_a_round_has_one_line() -> None:
    assert lines_of() == [
        "blur for arm64 on qemu, 4 threads, EMULATED TIME, NOT A DEVICE'S",
        "2 rounds of 4; × is over the default; writes /runs/blur-arm64-1",
        "warning: The full beam search failed: out of [memory]. A greedy one takes its place.",
        "failed, search: The search did not end within 60 s.",
        "failed, measure: The kernel was ended by signal 11.",
        ROUND,
        "play-off: timing the best again beside the default, 2 schedules in turns",
    ]


def test_the_lines_of_every_stage() -> None:
    assert lines_of(verbose=True) == [
        "blur for arm64 on qemu, 4 threads, EMULATED TIME, NOT A DEVICE'S",
        "2 rounds of 4; × is over the default; writes /runs/blur-arm64-1",
        "warning: The full beam search failed: out of [memory]. A greedy one takes its place.",
        "failed, search: The search did not end within 60 s.",
        f"best 8.000 ms {EMULATED} (one timing), the default schedule; batch_0_0/0",
        f"best 4.000 ms {EMULATED} (one timing), 2.00 times as fast as the default (8.000 ms {EMULATED}); batch_0_0/1",
        "failed, measure: The kernel was ended by signal 11.",
        "trained on 3 schedules in 0.2 s: accepted; enough",
        ROUND,
        DETAILS,
        "trained on 7 schedules in 0.2 s: rejected, the old weights stay; worse",
        "play-off: timing the best again beside the default, 2 schedules in turns",
    ]


def test_a_play_off_at_one_size_says_at_which() -> None:
    event = PlayOff(0, 3, 1, 8, "output=64x48")
    told = "play-off at output=64x48: timing the fastest there beside the winner, 3 schedules in turns"
    assert event_lines(event, progress_after([STARTED])) == [told]
    assert progress_after([STARTED, event]).stages["play-off"].note == "3 schedules in turns at output=64x48"


def test_real_time_has_no_mark() -> None:
    lines = lines_of("wall")
    assert lines[0].endswith("wall time")
    assert not any("emul" in line for line in lines)


def test_a_batch_without_times() -> None:
    progress = progress_after([STARTED, BatchDone(0, 0, 0, 4, {})])
    lines = event_lines(BatchDone(0, 0, 0, 4, {}), progress, verbose=True)
    assert lines == ["round 1/2  nothing timed yet  0 timed  4 failed"]


def test_times_of_a_run_keep_the_unit_of_its_default() -> None:
    best = BestImproved(0, "batch_1_0/1", 0.04, 0.8, "wall")
    progress = progress_after([started(clock="wall"), best, BatchDone(1, 0, 2, 0, {})])
    (line,) = event_lines(BatchDone(1, 0, 2, 0, {}), progress)
    assert line == "round 2/2  best 0.04000 ms (20.00×)  2 timed"
    assert event_lines(best, progress, verbose=True) == [
        "best 0.04000 ms (one timing), 20.00 times as fast as the default (0.8000 ms); batch_1_0/1"
    ]


def test_a_resumed_run_tells_the_best_of_before(tmp_path: Path) -> None:
    write_run_folder(tmp_path / "run", 5)
    with contextlib.closing(RunDatabase(tmp_path / "run" / "tuning.db")) as database:
        best_ms = min(one.median_ms for one in database.measured())
    event = BatchDone(1, 0, 0, 4, {})
    progress = progress_after([started(clock="wall", resumed=True, run_folder=str(tmp_path / "run")), event])
    (line,) = event_lines(event, progress)
    assert line.startswith(f"round 2/2  best {best_ms:#.4g} ms (")
    assert line.endswith("0 timed  4 failed")


def test_argument_sets_are_named_where_there_are_several() -> None:
    progress = progress_after([started(tasks=2, clock="wall", budget_s=600.0, resumed=True)])
    improved = BestImproved(1, "batch_0_1/3", 2.0, None, "wall", range_ms=(1.8, 2.2), timings=3)
    lines = event_lines(improved, progress, verbose=True)
    assert lines == [
        "best 2.000 ms (mean of 3 timings, 1.800 ms to 2.200 ms), the default is not timed; batch_0_1/3, argument set 2"
    ]
    assert progress.started is not None
    assert event_lines(progress.started, progress)[1] == (
        "2 rounds of 4, 2 argument sets, at most 10 min; × is over the default; resumes /runs/blur-arm64-1"
    )


def test_every_line_has_the_time_in_front(capsys: pytest.CaptureFixture[str]) -> None:
    display = PlainDisplay()
    for event in [*run_events(), Notice("one\ntwo")]:
        display.listen(event)
    display.listen(STOPPING)
    display.close()
    lines = capsys.readouterr().out.splitlines()
    assert all(re.fullmatch(r" +0 s  \S.*", line) for line in lines)
    assert lines[-1].endswith("stopping; press Ctrl-C again to stop at once")
    assert [line.split()[-1] for line in lines[-3:-1]] == ["one", "two"]


def test_progress_is_not_told() -> None:
    event = SampleMeasured(0, 0, 1, "random search", 4.0, 1.0, "wall", 1, 4)
    assert event_lines(event, progress_after([STARTED, event])) == []
