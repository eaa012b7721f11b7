"""What the reference takes: known better with every timing, and never better than the machine is steady."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.autotune_loop.run_scale import RunScale

TIMES_MS = st.lists(st.floats(0.01, 1e4), min_size=1, max_size=30)


def test_one_unlucky_first_timing_is_corrected() -> None:
    scale = RunScale("pi", [6.0])
    for _ in range(5):
        scale.add("pi", 2.5)
    assert (scale.anchor_ms, scale.settled_ms) == (6.0, 2.5)
    assert scale.correction == pytest.approx(2.5 / 6.0)


def test_another_device_says_nothing_of_the_first() -> None:
    scale = RunScale("pi", [6.0])
    scale.add("phone", 1.0)
    assert scale.settled_ms == 6.0


@given(TIMES_MS, st.floats(0.1, 10))
def test_the_range_is_around_the_time_and_wider_with_an_error(times_ms: list[float], time_ms: float) -> None:
    scale = RunScale("pi", times_ms)
    low_ms, high_ms = scale.range_ms(time_ms, 0.0)
    assert low_ms < time_ms < high_ms
    wider_low_ms, wider_high_ms = scale.range_ms(time_ms, 0.1)
    assert wider_low_ms < low_ms
    assert wider_high_ms > high_ms


@pytest.mark.parametrize("spread", [0.02, 0.2, 0.6])
@pytest.mark.parametrize("two_speeds", [False, True])
def test_another_moment_is_in_the_range_nineteen_times_of_twenty(spread: float, two_speeds: bool) -> None:
    chance = random.Random(1)

    def log_time() -> float:
        return chance.gauss(0, 0.02) + chance.choice([0, spread]) if two_speeds else chance.gauss(0, spread)

    inside = 0
    for _ in range(2000):
        scale = RunScale("pi", [math.exp(log_time()) for _ in range(30)])
        low_ms, high_ms = scale.range_ms(scale.settled_ms, 0.0)
        inside += low_ms <= math.exp(log_time()) <= high_ms
    assert inside >= 0.91 * 2000
