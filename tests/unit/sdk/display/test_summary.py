"""What is said at the end of a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from autotune_loop.play_off.verdict import Verdict, VerdictReason
from autotune_loop.run.result import Outcome, ScheduleTime, TunedSchedule, TuneResult
from sdk.display.display import RESUME_IT
from sdk.display.summary import print_summary
from tests.unit.sdk.display.recorded_run import RESULT, TUNED

NEXT = {
    "use it": "sdk build blur.py",
    "look at it": "sdk report r",
    "ship it": "sdk ship r -o s",
    RESUME_IT: "sdk autotune blur.py --resume",
}

VERDICT = Verdict("batch_0_0/1", "batch_0_0/1", "default", VerdictReason.FASTER, "It is faster.")
LABEL = " (emulated time, not a device's)"


def summary(result: TuneResult, capsys: pytest.CaptureFixture[str], rate: float | None = 12.0) -> str:
    print_summary(result, NEXT, rate)
    return capsys.readouterr().out


def of(tuned: TunedSchedule, clock: str = "wall") -> TuneResult:
    return replace(RESULT, tuned=(tuned,), clock=clock)


def test_the_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert summary(RESULT, capsys).splitlines() == [
        "",
        "blur for arm64 on qemu",
        "All times are emulated time, not a device's.",
        f"  default    8.000 ms{LABEL}, spread 1.0 %; {TUNED.default_description}",
        f"  tuned      4.000 ms{LABEL}, spread 0.5 %; batch_0_0/1",
        "  speed-up   2.00 times as fast",
        "  header     /runs/blur-arm64-1/samples/best.blur.schedule.h",
        "  weights    /runs/blur-arm64-1/samples/updated.weights",
        "  timed      7 schedules in 2 rounds, 12 a minute",
        "  failed     2 search: timed out, 1 measure: crashed",
        "  ended      after 1:35: all rounds are done",
        "  use it     sdk build blur.py",
        "  look at it sdk report r",
        "  ship it    sdk ship r -o s",
        "  resume it  sdk autotune blur.py --resume",
    ]


def test_paths_below_the_current_folder_are_short(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = summary(of(replace(TUNED, header=tmp_path / "tuned" / "best.h")), capsys)
    assert "  header     tuned/best.h\n" in text


def test_real_time_has_no_label(capsys: pytest.CaptureFixture[str]) -> None:
    assert "emulated" not in summary(of(TUNED), capsys)


@pytest.mark.parametrize(
    ("tuned", "expected"),
    [
        (
            replace(TUNED, sample="default", tuned=ScheduleTime(8.0, 0.02)),
            "the default stays: nothing is faster with confidence\n",
        ),
        (replace(TUNED, confirmed=False), "2.00 times as fast; unconfirmed: no play-off"),
        (
            replace(TUNED, sample="incumbent", tuned=None, confirmed=False),
            "the incumbent stays: nothing is faster with confidence; unconfirmed",
        ),
        (replace(TUNED, verdict=VERDICT), f"  play-off   {VERDICT.message}\n"),
        (
            replace(TUNED, tuned=ScheduleTime(4.0, 4.5), confirmed=False),
            "2.00 times as fast, within the spread of",
        ),
        (replace(TUNED, default=None), "unknown: the default was not timed"),
        (replace(TUNED, default=None), "  default    not timed\n"),
        (replace(TUNED, header=None, tuned=None), "  tuned      nothing was timed\n"),
    ],
)
def test_other_ends(tuned: TunedSchedule, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert expected in summary(of(tuned), capsys)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome.BUDGET_SPENT, "the budget is spent"),
        (Outcome.INTERRUPTED, "interrupted; everything measured is saved"),
        (Outcome.EXHAUSTED, "the search finds no new schedules"),
    ],
)
def test_how_it_ended(outcome: Outcome, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"after 1:35: {expected}\n" in summary(replace(RESULT, outcome=outcome), capsys)


def test_a_run_that_was_stopped_before_anything_was_timed(capsys: pytest.CaptureFixture[str]) -> None:
    result = replace(RESULT, tuned=(), totals=replace(RESULT.totals, samples_timed=0, failures={}, not_done=4))
    text = summary(result, capsys, rate=None)
    assert "nothing was timed" in text
    assert "  failed     none; 4 more were chosen but not timed\n" in text
    assert "a minute" not in text


def test_argument_sets_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    sets = (TUNED, replace(TUNED, parameters={"radius": "3", "tiles": "2"}))
    text = summary(replace(RESULT, tuned=sets), capsys)
    assert "argument set 1: the defaults\n" in text
    assert "argument set 2: radius=3 tiles=2\n" in text
