"""Who wins a play-off, over turns that go well and turns that do not."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from halide_autotune.autotune_loop.play_off.choice import FIRST_TURNS
from halide_autotune.autotune_loop.play_off.course import CHOOSING_TURNS, PlayOffCourse, PlayOffResult, Turn
from halide_autotune.autotune_loop.play_off.times import DeviceTimes, ProcessTime, turn_settings
from halide_autotune.autotune_loop.play_off.verdict import LEAST_GAIN, Comparison, Verdict, VerdictReason, compare_turns
from halide_autotune.autotune_loop.specification.objective import LOOKS, Objective, ObjectiveKind
from halide_autotune.devices.device import Clock
from halide_autotune.devices.timing.measure_settings import MeasureSettings
from halide_autotune.devices.timing.measurement import Beside, Measurement
from halide_autotune.devices.timing.measurement_at_sizes import over_sizes

Board = Mapping[str, float]


class Bench:
    """Boards on which each contender has a true time, with noise and a drift that is the same for all of a turn."""

    def __init__(self, boards: Mapping[str, Board], noise: float = 0.01, seed: int = 1) -> None:
        self._boards = dict(boards)
        self.devices = list(boards)
        self._noise = noise
        self._source = random.Random(seed)
        self.orders: list[tuple[str, ...]] = []
        self.yardsticks: list[str | None] = []
        self.failing_beside = False
        self.failing: dict[int, str] = {}
        self.leaving: dict[int, str] = {}
        self.stopped_in: int | None = None

    def _time(self, true_s: float) -> ProcessTime:
        time_s = true_s * (1 + self._source.gauss(0, self._noise))
        return ProcessTime(time_s, time_s)

    def __call__(self, order: Sequence[str], yardstick: str | None) -> Turn:
        number = len(self.orders)
        self.orders.append(tuple(order))
        self.yardsticks.append(yardstick)
        self._boards.pop(self.leaving.get(number, ""), None)
        failed = self.failing.get(number)
        drift = 1 + 0.5 * number / 100
        times = {
            board: {n: self._time(true_s[n] * drift) for n in order if n != failed}
            for board, true_s in self._boards.items()
        }
        out = order if failed == yardstick and self.failing_beside else [failed] if failed else []
        return Turn(times, frozenset(out), stopped=number == self.stopped_in)


def held(
    bench: Bench,
    names: Sequence[str] = ("default", "a", "b"),
    baseline: str | None = "default",
    objective: Objective | None = None,
    time_left_s: Callable[[], float] = lambda: math.inf,
    also_timed: str | None = None,
    first_look_left_s: Callable[[], float] | None = None,
) -> PlayOffResult:
    contenders = {name: f"the {name}" if name in ("default", "incumbent") else name for name in names}
    course = PlayOffCourse(
        contenders,
        baseline,
        objective or Objective(),
        7,
        bench,
        time_left_s,
        bench.devices,
        also_timed=also_timed,
        first_look_left_s=first_look_left_s,
    )
    return course.run()


def test_what_is_in_use_stays_where_nothing_challenges_it() -> None:
    bench = Bench({"pi": {"own": 2.0}})
    result = held(bench, ["own"], baseline="own")
    assert (result.verdict.winner, result.verdict.reason) == ("own", VerdictReason.NO_CHALLENGER)
    assert set(bench.orders) == {("own",)} and result.times["own"]["pi"].median_ms == pytest.approx(2000, rel=0.2)


def test_a_faster_challenger_wins_in_turns_of_its_own() -> None:
    bench = Bench({"pi": {"default": 2.0, "a": 1.0, "b": 1.5}})
    result = held(bench)
    verdict = result.verdict
    assert (verdict.winner, verdict.reason, verdict.turns) == ("a", VerdictReason.FASTER, LOOKS[0])
    assert verdict.p_value < 0.05 < 0.95 < verdict.confidence
    assert verdict.message.startswith("a is 1.985") and verdict.message.endswith("in 8 turns on pi.")
    assert len(bench.orders) == FIRST_TURNS + LOOKS[0]
    assert all(set(order) == {"default", "a"} for order in bench.orders[FIRST_TURNS:])
    assert len(set(bench.orders)) > 2, "the order changes"
    assert len(result.times["a"]["pi"].turns_s) == LOOKS[0], "the turns that chose it do not count"
    assert next(iter(result.times)) == "a" and result.times["a"]["pi"].range_ms[0] < result.times["a"]["pi"].median_ms


def test_a_close_choice_takes_more_turns_of_those_that_may_be_the_best() -> None:
    """Of two that are 3 % apart in noise of 2 % the better one is found, and the clearly slower one is not timed on."""
    wins, turns_of = 0, {"b": 0, "c": 0}
    for seed in range(20):
        bench = Bench({"pi": {"a": 1.03, "b": 1.0, "c": 1.3, "default": 2.0}}, noise=0.02, seed=seed)
        wins += held(bench, ("a", "b", "c", "default")).verdict.winner == "b"
        choosing = bench.orders[: -LOOKS[0]]
        assert FIRST_TURNS <= len(choosing) <= CHOOSING_TURNS
        assert all("default" not in order for order in choosing[FIRST_TURNS:])
        for name in turns_of:
            turns_of[name] += sum(name in order for order in choosing)
    assert wins >= 18
    assert turns_of["c"] == 20 * FIRST_TURNS and turns_of["b"] > 2 * turns_of["c"]


def test_contenders_are_chosen_beside_one_of_them_and_the_winner_is_compared_beside_the_baseline() -> None:
    bench = Bench({"pi": {"default": 2.0, "a": 1.2, "b": 1.0}})
    assert held(bench, ("a", "b", "default")).verdict.winner == "b"
    assert bench.yardsticks == ["a"] * FIRST_TURNS + ["default"] * LOOKS[0]


def test_a_choice_begins_again_without_a_yardstick_that_fails() -> None:
    """What failed beside it is not out, because it may have failed by it."""
    bench = Bench({"pi": {"default": 2.0, "a": 0.5, "b": 1.2, "c": 1.0}})
    bench.failing = {1: "a"}
    bench.failing_beside = True
    result = held(bench, ("a", "b", "c", "default"))
    assert result.verdict.winner == "c" and "a" not in result.times
    assert bench.yardsticks[:4] == ["a", "a", "b", "b"] and "default" in bench.orders[2]


def test_equal_seeds_make_equal_orders() -> None:
    one, other = (Bench({"pi": {"default": 2.0, "a": 1.0, "b": 1.5}}) for _ in range(2))
    held(one), held(other)
    assert one.orders == other.orders


def test_of_many_equal_contenders_none_wins() -> None:
    """The best of eight on five turns looks faster; the turns that follow do not confirm it."""
    names = ["default", *"abcdefgh"]
    wins = 0
    for seed in range(40):
        verdict = held(Bench({"pi": dict.fromkeys(names, 1.0)}, noise=0.03, seed=seed), names).verdict
        wins += verdict.winner != "default"
        assert verdict.challenger in names[1:] and verdict.is_decided
    assert wins <= 4


def test_the_default_stays_with_a_reason() -> None:
    slower = held(Bench({"pi": {"default": 1.0, "a": 1.2, "b": 1.3}})).verdict
    assert slower.winner == "default" and slower.reason is VerdictReason.NOT_FASTER and slower.turns == LOOKS[0]
    assert slower.message.startswith("The default stays: no schedule is over 1 % faster; the best, a, is 0.8")
    unsure = held(Bench({"pi": {"default": 1.0, "a": 0.97, "b": 1.3}}, noise=0.25, seed=5)).verdict
    assert unsure.winner == "default" and unsure.reason in (VerdictReason.NOT_PROVEN, VerdictReason.NOT_FASTER)


@pytest.mark.parametrize("time_s", [0.9998, 0.996])
def test_a_gain_that_only_a_clock_without_noise_sees_replaces_nothing(time_s: float) -> None:
    bench = Bench({"qemu": {"default": 1.0, "a": time_s}}, noise=0.0)
    verdict = held(bench, ("default", "a")).verdict
    assert (verdict.winner, verdict.reason, verdict.turns) == ("default", VerdictReason.NOT_FASTER, LOOKS[0])
    told = f"The default stays: no schedule is over 1 % faster; the best, a, is {1 / time_s:.3f} times"
    assert verdict.message.startswith(told)


def decided_after_one_look(bench: Bench, least_gain: float = LEAST_GAIN) -> Verdict:
    return decided_between_two(bench, LOOKS[0], least_gain)


def decided_between_two(bench: Bench, most_turns: int, least_gain: float = LEAST_GAIN) -> Verdict:
    course = PlayOffCourse(
        {"default": "the default", "a": "a"},
        "default",
        Objective(),
        seed=7,
        time_turn=bench,
        time_left_s=lambda: math.inf,
        devices=bench.devices,
        most_turns=most_turns,
        least_gain=least_gain,
    )
    return course.run().verdict


@pytest.mark.parametrize(("most_turns", "looks"), [(LOOKS[-1], LOOKS), (128, (*LOOKS[:-1], 128)), (20, (8, 16, 20))])
def test_there_are_as_many_looks_as_the_confidence_is_shared_by(
    monkeypatch: pytest.MonkeyPatch, most_turns: int, looks: tuple[int, ...]
) -> None:
    looked: list[int] = []

    def undecided(log_ratios: Sequence[Mapping[str, float]], *more: Any) -> Comparison:
        looked.append(len(log_ratios))
        return compare_turns([{"pi": 0.3 * (-1) ** turn} for turn in range(LOOKS[0])], *more)

    monkeypatch.setattr("halide_autotune.autotune_loop.play_off.course.compare_turns", undecided)
    decided_between_two(Bench({"pi": {"default": 1.0, "a": 0.9}}), most_turns)
    assert tuple(looked) == looks


@pytest.mark.parametrize(
    ("true_s", "winner", "reason", "told"),
    [
        (0.8, "a", VerdictReason.FASTER, "a is 1.2"),
        (
            0.95,
            "default",
            VerdictReason.NOT_FASTER,
            "no schedule is over 10 % faster; the best, a, ",
        ),
        (
            0.91,
            "default",
            VerdictReason.NOT_PROVEN,
            "do not show with 95 % confidence that a is over 10 % faster",
        ),
    ],
)
def test_a_gain_must_be_as_large_as_is_asked(true_s: float, winner: str, reason: VerdictReason, told: str) -> None:
    bench = Bench({"pi": {"default": 1.0, "a": true_s}}, noise=0.006)
    verdict = decided_after_one_look(bench, least_gain=1 - 1 / 1.1)
    assert (verdict.winner, verdict.reason) == (winner, reason) and told in verdict.message


def test_a_gain_that_may_be_too_small_is_not_proven() -> None:
    """All of the interval is a gain, but not all of it one that counts."""
    bench = Bench({"pi": {"default": 1.0, "a": 0.985}}, noise=0.006, seed=2)
    verdict = decided_after_one_look(bench)
    assert verdict.estimate is not None and 1 - verdict.estimate.low > LEAST_GAIN and verdict.estimate.high < 1
    assert (verdict.winner, verdict.reason) == ("default", VerdictReason.NOT_PROVEN)
    assert "8 turns do not show with 95 % confidence that a is over 1 % faster; it is 1.0" in verdict.message


def test_an_incumbent_is_what_must_be_beaten_and_the_default_is_timed_beside_it() -> None:
    bench = Bench({"pi": {"default": 2.0, "a": 1.0, "incumbent": 0.9}})
    result = held(bench, ("default", "a", "incumbent"), "incumbent", also_timed="default")
    assert result.verdict.winner == "incumbent" and result.verdict.challenger == "a"
    assert "The incumbent stays" in result.verdict.message
    assert all(set(order) == {"default", "a", "incumbent"} for order in bench.orders)
    assert len(result.times["default"]["pi"].turns_s) == result.verdict.turns


def test_a_challenger_that_fails_makes_way_and_a_baseline_that_fails_is_not_missed() -> None:
    bench = Bench({"pi": {"default": 2.0, "a": 1.0, "b": 1.5}})
    bench.failing = {FIRST_TURNS + 2: "a"}
    result = held(bench)
    assert result.verdict.winner == "b" and "a" not in result.times
    bench = Bench({"pi": {"default": 2.0, "a": 1.0, "b": 1.5}})
    bench.failing = {1: "default"}
    assert held(bench).verdict.reason is VerdictReason.UNOPPOSED
    bench = Bench({"pi": {"default": 2.0, "a": 1.0}})
    bench.failing = {1: "a"}
    assert held(bench, ("default", "a")).verdict.reason is VerdictReason.NO_CHALLENGER


def test_the_first_look_may_come_after_the_time_of_the_others() -> None:
    """The fewest turns choose, eight decide, and there are no further ones although nothing is decided."""
    bench = Bench({"pi": {"default": 1.0, "a": 1.0, "b": 1.0}}, noise=0.05)
    result = held(bench, time_left_s=lambda: 0.0, first_look_left_s=lambda: 100.0)
    assert len(bench.orders) == FIRST_TURNS + LOOKS[0]
    assert result.verdict.is_decided and result.verdict.turns == LOOKS[0]


def test_past_its_time_it_is_unconfirmed_and_says_so() -> None:
    bench = Bench({"pi": {"default": 2.0, "a": 1.0, "b": 1.5}})
    result = held(bench, time_left_s=lambda: 9.0 - len(bench.orders))
    assert not result.verdict.is_decided and "no time left" in result.verdict.message
    assert len(bench.orders) == 9 and result.times, "what was timed is told"
    bench = Bench({"pi": {"default": 2.0, "a": 1.0, "b": 1.5}})
    held(bench, time_left_s=lambda: 0.0)
    assert len(bench.orders) == FIRST_TURNS


def test_choosing_leaves_time_for_the_first_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timing takes a second: there is time for two turns of three contenders and the look, not for five turns."""
    now_s = 0.0
    clock = SimpleNamespace(monotonic=lambda: now_s)
    monkeypatch.setattr("halide_autotune.autotune_loop.play_off.course.time", clock)
    bench = Bench({"pi": {"default": 2.0, "a": 1.0, "b": 1.5}})

    def time_turn(order: Sequence[str], yardstick: str | None) -> Turn:
        nonlocal now_s
        now_s += len(order)
        return bench(order, yardstick)

    names = {name: name for name in ("default", "a", "b")}
    end_s = 3 * FIRST_TURNS + 2 * LOOKS[0] + 1
    course = PlayOffCourse(names, "default", Objective(), 7, time_turn, lambda: end_s - now_s, ["pi"])
    assert course.run().verdict.winner == "a" and len(bench.orders) == FIRST_TURNS + LOOKS[0]


def test_time_that_ends_between_two_looks_leaves_a_verdict() -> None:
    bench = Bench({"pi": {"default": 1.0, "a": 0.97, "b": 1.1}}, noise=0.03, seed=2)
    verdict = held(bench, time_left_s=lambda: CHOOSING_TURNS + 12.0 - len(bench.orders)).verdict
    assert verdict.is_decided and LOOKS[0] <= verdict.turns <= 20


@pytest.mark.parametrize("stopped_in", [0, FIRST_TURNS + 1])
def test_a_stop_leaves_it_unconfirmed(stopped_in: int) -> None:
    bench = Bench({"pi": {"default": 2.0, "a": 1.0, "b": 1.5}})
    bench.stopped_in = stopped_in
    assert not held(bench).verdict.is_decided and len(bench.orders) == stopped_in + 1


def test_on_several_boards_the_objective_decides() -> None:
    boards = {"pi": {"default": 1.0, "a": 0.7, "b": 0.9}, "phone": {"default": 10.0, "a": 11.0, "b": 9.0}}
    mean = held(Bench(boards))
    assert mean.verdict.winner == "a" and set(mean.verdict.by_device) == {"pi", "phone"}
    worst = held(Bench(boards), objective=Objective(ObjectiveKind.WORST))
    assert worst.verdict.winner == "b"
    alone = held(Bench(boards), ("default", "a"), objective=Objective(ObjectiveKind.WORST)).verdict
    assert alone.winner == "default" and alone.reason is VerdictReason.SLOWER_ON_A_DEVICE
    assert "phone: 0.9" in alone.message and "2.0% slower" in alone.message


@pytest.mark.parametrize("turn", [0, 1, LOOKS[0]])
def test_a_board_that_leaves_does_not_count_and_is_named(turn: int) -> None:
    boards = {"pi": {"default": 2.0, "a": 1.0}, "phone": {"default": 2.0, "a": 1.0}}
    bench = Bench(boards)
    bench.leaving = {turn: "phone"}
    verdict = held(bench, ("default", "a")).verdict
    assert verdict.winner == "a" and verdict.devices_lost == ("phone",)
    assert "phone did not finish and does not count" in verdict.message
    bench = Bench(boards)
    bench.leaving = {turn: "phone"}
    assert not held(bench, ("default", "a"), objective=Objective(ObjectiveKind.WORST)).verdict.is_decided


def test_without_a_baseline_a_process_is_compared_by_its_quicker_calls_and_told_by_its_median() -> None:
    measurement = Measurement("k", "pi", Clock.WALL, (1.0, 9.0, 1.1, 9.0, 9.0), "time", True)
    assert ProcessTime.of(measurement, None) == ProcessTime(median_s=9.0, compared=1.1)
    assert ProcessTime.of(Measurement("k", "pi", Clock.WALL, (2.0,), "time", True), None) == ProcessTime(2.0, 2.0)


def test_beside_the_baseline_it_is_compared_by_the_ratio() -> None:
    marks = (False, False, False)
    beside = Beside("default", (2.0, 20.0, 2.0), marks, marks)
    measurement = Measurement("k", "pi", Clock.WALL, (1.0, 10.0, 1.0), "time", True, disturbed=marks, beside=beside)
    assert ProcessTime.of(measurement, "default") == ProcessTime(median_s=1.0, compared=0.5)
    default = Measurement("default", "pi", Clock.WALL, (3.0,), "time", True)
    assert ProcessTime.of(default, "default") == ProcessTime(median_s=3.0, compared=1.0)


def test_over_several_sizes_the_mean_ratio_is_compared_and_each_size_is_told() -> None:
    marks = (False,)

    def at(own_s: float, other_s: float) -> Measurement:
        beside = Beside("default", (other_s,), marks, marks)
        return Measurement("k", "pi", Clock.WALL, (own_s,), "time", True, disturbed=marks, beside=beside)

    turns = [
        ProcessTime.of(over_sizes({"large": at(8.0, 8.0), "small": at(small_s, 2.0)}), "default")
        for small_s in (0.5, 0.5, 2.0)
    ]
    assert (turns[0].median_s, turns[0].compared) == pytest.approx((2.0, 0.5))
    assert turns[0].by_size_s == {"large": 8.0, "small": 0.5}
    time = DeviceTimes(tuple(turns)).schedule_time
    assert time.median_ms == pytest.approx(2e3) and time.by_size_ms == {"large": 8e3, "small": 500.0}
    alone = Measurement("k", "pi", Clock.WALL, (1.0, 9.0, 4.0), "time", True)
    both = ProcessTime.of(over_sizes({"large": replace(alone, repetitions_s=(4.0,)), "small": alone}), None)
    assert (both.median_s, both.compared) == pytest.approx((4.0, 2.0))


def test_on_a_clock_without_noise_each_is_timed_alone() -> None:
    for name in ("default", "k"):
        simulated = Measurement(name, "qemu", Clock.SIMULATED, (2.0,), "repetitions", True)
        assert ProcessTime.of(simulated, "default") == ProcessTime(2.0, 2.0)


def test_contenders_are_timed_beside_the_baseline_to_the_end() -> None:
    settings = MeasureSettings()
    assert turn_settings(settings, "default", "default") == settings
    assert turn_settings(settings, "k", None) == settings
    paired = turn_settings(settings, "k", "default")
    assert (paired.beside, paired.lost_over) == ("default", 1e6)


def test_at_one_of_several_sizes_its_own_times_count() -> None:
    beside = Beside("best", (2.0, 2.0), (), ())
    small = Measurement("a", "pi", Clock.WALL, (1.0, 1.0), "precision", True, beside=beside)
    large = replace(small, repetitions_s=(8.0, 8.0))
    assert ProcessTime.of(over_sizes({"small": small, "large": large}), "best", "large") == ProcessTime(8.0, 4.0)
