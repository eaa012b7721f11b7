"""When a challenger has won, and how wide the interval of its ratio is."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halide_autotune.autotune_loop.play_off.verdict import (
    LEAST_GAIN,
    Comparison,
    RatioEstimate,
    compare_turns,
    estimate_ratio,
    least_gain_by,
)
from halide_autotune.autotune_loop.specification.objective import LOOKS, Objective, ObjectiveKind
from halide_autotune.devices.device import Clock

MEAN = Objective()
RATIOS = st.integers(-50_000, 50_000).map(lambda number: number / 100_000)


def compared(logs: list[float], objective: Objective = MEAN) -> Comparison:
    return compare_turns([{"pi": value} for value in logs], objective)


def test_eight_turns_for_the_challenger_win_and_seven_do_not() -> None:
    assert compared([-0.02 - 0.001 * i for i in range(8)]).is_won
    assert not compared([-0.02 - 0.001 * i for i in range(7)]).is_won, "too few to be sure"
    assert not compared([-0.02 - 0.001 * i for i in range(7)] + [0.02]).is_won, "one turn says otherwise"


def test_what_is_ever_the_same_decides_too() -> None:
    """An exact clock gives the same times in every turn."""
    won = compared([-0.02] * 8)
    assert won.is_won and won.estimate.low == won.estimate.high == pytest.approx(math.exp(-0.02))
    equal = compared([0.0] * 8)
    assert not equal.is_won and equal.is_hopeless and equal.p_value == 1.0


def test_a_gain_that_is_none_to_speak_of_replaces_nothing() -> None:
    nothing = compared([-0.0095] * 8)
    assert not (nothing.is_faster or nothing.is_won) and nothing.is_hopeless
    assert compared([-0.0105] * 8).is_won


@pytest.mark.parametrize("clock", Clock)
def test_without_noise_a_gain_of_over_one_per_cent_may_be_where_the_code_lies(clock: Clock) -> None:
    little = compare_turns([{"pi": -0.015}] * 8, Objective(), least_gain_by(clock))
    assert little.is_won is clock.is_noisy
    assert compare_turns([{"pi": -0.025}] * 8, Objective(), least_gain_by(clock)).is_won


@settings(max_examples=40, deadline=None)
@given(st.lists(RATIOS, min_size=8, max_size=20))
def test_it_is_won_when_the_interval_says_so_and_the_test_says_so(logs: list[float]) -> None:
    result = compared(logs)
    estimate = result.estimate
    assert 0 < estimate.low <= estimate.ratio * (1 + 1e-9) and estimate.ratio <= estimate.high * (1 + 1e-9)
    assert result.is_won == (estimate.high < 1 - LEAST_GAIN)
    if not 1 - LEAST_GAIN <= estimate.high < 1 and len({abs(value) for value in logs}) == len(logs) and 0.0 not in logs:
        assert result.is_won == (result.p_value <= 0.05 + 1e-12 and estimate.ratio < 1)


@settings(max_examples=40, deadline=None)
@given(st.lists(RATIOS, min_size=1, max_size=20))
def test_the_other_way_round_is_the_reciprocal(logs: list[float]) -> None:
    one, other = estimate_ratio(logs), estimate_ratio([-value for value in logs])
    assert one.ratio == pytest.approx(1 / other.ratio)
    assert one.low == pytest.approx(1 / other.high if math.isfinite(other.high) else 0.0)


def test_the_error_of_one_look_is_at_most_its_share() -> None:
    """Counted over every way in which the signs of equal contenders can fall."""
    turns = LOOKS[0]
    sizes = [0.02 * (i + 1) + 0.003 * (i % 3) for i in range(turns)]
    wins = sum(
        compared([sign * size for sign, size in zip(signs, sizes, strict=True)]).is_won
        for signs in itertools.product((-1, 1), repeat=turns)
    )
    assert wins / 2**turns <= 0.025 / len(LOOKS)
    assert wins >= 1


def test_outliers_do_not_decide() -> None:
    """One process that was ten times as slow, on either side, in the turns of a true gain of 5 %."""
    source = random.Random(1)
    logs = [math.log(0.95) + source.gauss(0, 0.01) for _ in range(16)]
    logs[3], logs[9] = math.log(10), math.log(0.1)
    result = compared(logs)
    assert result.is_won and result.estimate.ratio == pytest.approx(0.95, abs=0.01)


def test_a_loss_and_a_gain_that_is_not_worth_it_are_hopeless() -> None:
    assert compared([0.01 + 0.001 * i for i in range(8)]).is_hopeless
    source = random.Random(2)
    tiny = compared([-0.0004 + source.gauss(0, 0.006) for _ in range(32)])
    assert not tiny.is_won and tiny.is_hopeless


def two_boards(objective: Objective, second: float) -> Comparison:
    source = random.Random(3)

    def noise() -> float:
        return source.gauss(0, 0.003)

    return compare_turns([{"pi": -0.10 + noise(), "phone": second + noise()} for _ in range(16)], objective)


def test_the_mean_lets_one_board_pay_for_another_and_the_worst_case_does_not() -> None:
    assert two_boards(MEAN, 0.05).is_won
    worst = two_boards(Objective(ObjectiveKind.WORST), 0.05)
    assert not worst.is_won and worst.slower_devices == ("phone",) and worst.is_hopeless
    assert two_boards(Objective(ObjectiveKind.WORST), 0.005).is_won, "within the tolerance"
    assert two_boards(Objective(ObjectiveKind.WORST, worst_tolerance=0.10), 0.05).is_won


def test_weights_decide_whose_loss_counts() -> None:
    phone = Objective(ObjectiveKind.WEIGHTED, {"phone": 4.0})
    pi = Objective(ObjectiveKind.WEIGHTED, {"pi": 4.0})
    assert not two_boards(phone, 0.05).is_won and two_boards(pi, 0.05).is_won
    assert phone.score({"pi": 0.5, "phone": 1.0}) == pytest.approx(0.5**0.2)
    assert Objective(ObjectiveKind.WORST).score({"pi": 0.5, "phone": 1.1}) == 1.1
    assert MEAN.score({"pi": 0.5, "phone": 2.0}) == pytest.approx(1.0)


def test_how_an_interval_is_told() -> None:
    text = RatioEstimate(0.8, 0.75, 0.85).speed_text("the default")
    assert text == "1.250 times as fast as the default (95 % interval 1.176 to 1.333)"
    assert "at least 1.176" in RatioEstimate(0.8, 0.0, 0.85).speed_text()
