"""What is said at the end of a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.autotune_loop.play_off.verdict import RatioEstimate, Verdict, VerdictReason
from halide_autotune.autotune_loop.run.result import Outcome, TunedSchedule, TuneResult
from halide_autotune.autotune_loop.store.published import NOTHING, NoDefault, ScheduleTime, SpeedUp
from halide_autotune.autotune_loop.store.size_schedules import GENERAL, SizeSchedule
from halide_autotune.sdk.display.display import RESUME_IT
from halide_autotune.sdk.display.summary import print_summary
from tests.unit.sdk.display.recorded_run import RESULT, TUNED

NEXT = {
    "use it": "sdk build blur.py",
    "look at it": "sdk report r",
    "ship it": "sdk ship r -o s",
    RESUME_IT: "sdk autotune blur.py --resume",
}

MARK = " emul"


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
        f"  default    8.000 ms{MARK}, play-off median of 8, spread 1.0 %; {TUNED.default_description}",
        f"  tuned      4.000 ms{MARK}, play-off median of 8, spread 0.5 %; batch_0_0/1",
        "  speed-up   2.050 times as fast as the default (95 % interval 2.020 to 2.080)",
        "  play-off   batch_0_0/1 is faster.",
        "  header     /runs/blur-arm64-1/samples/best.blur.schedule.h",
        "  weights    /runs/blur-arm64-1/samples/updated.weights",
        "  timed      7 schedules in 2 rounds, 12/min",
        "  failed     2 search: timed out, 1 measure: crashed",
        "  ended      after 1 min 35 s: all rounds are done",
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


def test_what_the_times_are_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(RESULT, NEXT, 12.0, clock_is_told=True)
    text = capsys.readouterr().out
    assert "emulated time" not in text and "8.000 ms emul" in text


def test_real_time_has_no_mark(capsys: pytest.CaptureFixture[str]) -> None:
    assert "emulated" not in summary(of(TUNED), capsys)


AT_SIZES = {
    "default": ScheduleTime(8.0, 0.08, by_size_ms={"input=64x48": 32.0, "input=8x6": 2.0}),
    "tuned": ScheduleTime(4.0, 0.02, by_size_ms={"input=64x48": 16.0, "input=8x6": 1.0}),
    "speed_up": SpeedUp(2.0, "default"),
    "confirmed": False,
}
ONCE = {
    "confirmed": False,
    "message": "Unconfirmed: the play-off was stopped.",
    "default": ScheduleTime(8.0, 0.08),
    "tuned": ScheduleTime(4.0, 0.02),
    "speed_up": SpeedUp(2.0, "default"),
}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"sample": "default", "speed_up": SpeedUp(1.0, "default")},
            "  tuned      the default stays: nothing is faster with confidence\n",
        ),
        (
            {"sample": "default", "speed_up": SpeedUp(1.2, "incumbent", 1.1, 1.3)},
            "1.200 times as fast as the incumbent (95 % interval 1.100 to 1.300)\n",
        ),
        ({"sample": "incumbent", "tuned": None, "confirmed": False}, "the incumbent stays: nothing is faster with"),
        (ONCE, f"  default    8.000 ms, one timing, spread 1.0 %; {TUNED.default_description}\n"),
        (ONCE, "  tuned      4.000 ms, one timing, spread 0.5 %; batch_0_0/1\n"),
        (ONCE, "  speed-up   2.00 times as fast as the default, one timing; unconfirmed\n"),
        (ONCE, "  play-off   Unconfirmed: the play-off was stopped.\n"),
        ({**ONCE, "tuned": ScheduleTime(4.0, 0.02, processes=3)}, "default, mean of 3 timings; unconfirmed\n"),
        ({**ONCE, "tuned": ScheduleTime(4.0, 4.5)}, "one timing, within the spread of the times; unconfirmed\n"),
        (
            {**AT_SIZES, "tuned": ScheduleTime(0.5, 0.02, by_size_ms={"input=64x48": 2.0, "input=8x6": 0.05})},
            "  at a size  2000 us, the default 32000 us; input=64x48\n  at a size  50.00 us, the default 2000 us; ",
        ),
        (AT_SIZES, "  tuned      4.000 ms, one timing, geometric mean of 2 sizes, spread 0.5 %; batch_0_0/1\n"),
        (
            AT_SIZES,
            "  at a size  16.00 ms, the default 32.00 ms; input=64x48\n  at a size  1.000 ms, the default 2.000 ms; ",
        ),
        ({**AT_SIZES, "default": None}, "  at a size  16.00 ms; input=64x48\n"),
        ({**AT_SIZES, "sample": "default"}, "  at a size  16.00 ms; input=64x48\n"),
        ({"default": None, "speed_up": None}, "unknown: the default was not timed"),
        ({"default": None, "speed_up": None}, "  default    not timed\n"),
        (
            {"default": None, "speed_up": None, "no_default": NoDefault("its search failed (crashed)", "X\nwas lost.")},
            "  default    not timed, because its search failed (crashed): X was lost.\n",
        ),
    ],
)
def test_other_ends(changes: dict[str, Any], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    tuned = replace(TUNED, published=replace(TUNED.published, **changes))
    assert expected in summary(of(tuned), capsys)


def test_where_nothing_was_timed(capsys: pytest.CaptureFixture[str]) -> None:
    assert "  tuned      nothing was timed\n" in summary(of(replace(TUNED, header=None, published=NOTHING)), capsys)


def test_each_device_has_its_own_paired_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    ratios = {"pi": RatioEstimate(0.5, 0.4, 0.6), "phone": RatioEstimate(0.8, 0.7, 0.9)}
    published = replace(TUNED.published, by_device={"pi": (8.0, 4.0), "phone": (3.0, 2.0)})
    verdict = Verdict("a", "a", "default", VerdictReason.FASTER, "It is faster.", by_device=ratios)
    text = summary(of(replace(TUNED, published=published, verdict=verdict)), capsys)
    assert "  pi         4.000 ms, 2.000 times as fast (95 % interval 1.667 to 2.500)\n" in text
    assert "  phone      2.000 ms, 1.250 times as fast (95 % interval 1.111 to 1.429)\n" in text


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome.BUDGET_SPENT, "the budget is spent"),
        (Outcome.INTERRUPTED, "interrupted; everything measured is saved"),
        (Outcome.EXHAUSTED, "the search finds no new schedules"),
    ],
)
def test_how_it_ended(outcome: Outcome, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"after 1 min 35 s: {expected}\n" in summary(replace(RESULT, outcome=outcome), capsys)


def test_a_run_that_was_stopped_before_anything_was_timed(capsys: pytest.CaptureFixture[str]) -> None:
    result = replace(RESULT, tuned=(), totals=replace(RESULT.totals, samples_timed=0, failures={}, not_done=4))
    text = summary(result, capsys, rate=None)
    assert "nothing was timed" in text
    assert "  failed     none; 4 more were chosen but not timed\n" in text
    assert "/min" not in text


def test_argument_sets_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    sets = (TUNED, replace(TUNED, parameters={"radius": "3", "tiles": "2"}))
    text = summary(replace(RESULT, tuned=sets), capsys)
    assert "argument set 1: the defaults\n" in text
    assert "argument set 2: radius=3 tiles=2\n" in text


def test_sizes_that_have_their_own_schedules_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    general = SizeSchedule("output=640x480", "output", "640x480", "batch_0_0/1", "s1", "", "", "Nothing is faster.")
    own = replace(
        general,
        size="output=64x48",
        sample="batch_0_0/2",
        header="best.blur.at_64x48.schedule.h",
        tuned=ScheduleTime(0.5, 0.01, (0.4, 0.6), 8),
        speed_up=SpeedUp(1.2, GENERAL, 1.15, 1.25),
    )
    late = replace(general, message="Unconfirmed: there was no time.", is_unconfirmed=True)
    gain = "1.200 times as fast as the schedule for all sizes (95 % interval 1.150 to 1.250)"
    lines = summary(of(replace(TUNED, size_schedules=(general, own, late))), capsys).splitlines()
    assert [line for line in lines if "64x48" in line or "Unconfirmed" in line or "Nothing" in line] == [
        f"  for a size 0.5000 ms, {gain}; batch_0_0/2; output=64x48",
        "  for a size Unconfirmed: there was no time; output=640x480",
        "             /runs/blur-arm64-1/samples/best.blur.at_64x48.schedule.h",
    ]
