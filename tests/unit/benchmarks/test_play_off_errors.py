"""Counting the errors of play-offs, with scripted times."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import pytest

from benchmarks.play_off_errors import count, highest_rate
from halide_autotune.autotune_loop.play_off.course import PlayOffCourse, Turn
from halide_autotune.autotune_loop.play_off.times import ProcessTime
from halide_autotune.autotune_loop.play_off.verdict import Verdict
from halide_autotune.autotune_loop.specification.objective import Objective


def verdict(stays_s: float, challenges_s: float) -> Verdict:
    """Of a play-off in which times scatter by 1 %."""
    noise = itertools.cycle([0.99, 1.0, 1.01])
    times_s = {"stays": stays_s, "challenges": challenges_s}

    def time_turn(order: Sequence[str], yardstick: str | None) -> Turn:
        taken_s = {name: times_s[name] * next(noise) for name in order}
        return Turn({"local": {name: ProcessTime(time_s, time_s) for name, time_s in taken_s.items()}})

    contenders = {name: name for name in times_s}
    return PlayOffCourse(contenders, "stays", Objective(), 0, time_turn, lambda: math.inf, ["local"]).run().verdict


def test_a_win_among_equals_is_false_and_one_of_a_true_gain_is_found() -> None:
    equals, better = [verdict(1.0, 1.0), verdict(1.0, 0.5)], [verdict(1.0, 0.8), verdict(1.0, 0.8)]
    result = count(equals, better, 3.0)
    assert result.trials == 2
    assert result.false_wins == sum(one.winner == "challenges" for one in equals) == 1
    assert result.false_wins / result.trials <= result.highest_false_rate <= 1
    assert result.found == 2 and result.true_ratio == pytest.approx(0.8, rel=0.02)
    assert all(one.baseline == "stays" for one in equals)


@pytest.mark.parametrize(("wins", "trials", "highest"), [(0, 60, 0.0487), (3, 60, 0.1242), (1, 1, 1.0), (0, 1, 0.95)])
def test_the_true_rate_is_bounded(wins: int, trials: int, highest: float) -> None:
    assert wins / trials <= highest_rate(wins, trials) == pytest.approx(highest, abs=5e-4)
