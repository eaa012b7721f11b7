"""The model of schedules: what it learnt of one Func holds with others, and what it chooses differs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from halide_autotune.autotune_loop.draft.features import ABSENT, FEATURE_NAMES
from halide_autotune.autotune_loop.search.models.schedule_model import ScheduleModel

PLACE = FEATURE_NAMES.index("vectorized")


def schedule(**widths: float) -> dict[str, tuple[float, ...]]:
    """Each Func with that number in one place."""
    return {func: (*ABSENT[:PLACE], width, *ABSENT[PLACE + 1 :]) for func, width in widths.items()}


def time_ms(a: float, b: float) -> float:
    """Best with a = 3, whatever b is, and with b = 1."""
    return float(np.exp(0.06 * (a - 3) ** 2 + 0.03 * (b - 1) ** 2))


GRID = [(float(a), float(b)) for a, b in itertools.product(range(6), range(6))]


def test_it_predicts_what_it_has_not_seen() -> None:
    seen = [place for place in range(len(GRID)) if place % 3]
    timed = [schedule(a=GRID[place][0], b=GRID[place][1]) for place in seen]
    model = ScheduleModel(timed, [time_ms(*GRID[place]) for place in seen])
    predicted, _ = model.predict([schedule(a=a, b=b) for a, b in GRID])
    assert np.abs(predicted - np.log([time_ms(*each) for each in GRID])).max() < 0.15


def test_what_is_best_of_each_func_is_put_together() -> None:
    """No schedule that has both was timed."""
    seen = [(a, b) for a, b in GRID if not (2 <= a <= 4 and b <= 2)]
    model = ScheduleModel([schedule(a=a, b=b) for a, b in seen], [time_ms(*each) for each in seen])
    predicted, _ = model.predict([schedule(a=a, b=b) for a, b in GRID])
    assert GRID[int(predicted.argmin())] == (3.0, 1.0)


def test_the_fastest_expected_comes_first_and_the_next_differ_from_it() -> None:
    timed = [(float(a), 1.0) for a in range(6)]
    model = ScheduleModel([schedule(a=a, b=b) for a, b in timed], [time_ms(*each) for each in timed])
    fast, near, slow = schedule(a=2.6, b=1.0), schedule(a=2.2, b=1.0), schedule(a=0.4, b=1.0)
    assert model.expectation([slow, near, fast]).most_promising(3) == [2, 1, 0]
    assert model.expectation([slow, near, fast]).most_promising(2) == [2, 1]


def test_of_two_that_are_alike_one_is_enough_to_know() -> None:
    model = ScheduleModel([schedule(a=a) for a in (0.0, 1.0, 5.0, 6.0)], [3.0, 2.0, 2.01, 3.0])
    best, twin, other = schedule(a=2.5), schedule(a=2.5), schedule(a=3.5)
    assert model.predict([best])[0] < model.predict([other])[0]
    assert model.expectation([best, twin, other]).most_promising(2) == [0, 2]


def test_how_hopeless_a_schedule_is_does_not_count() -> None:
    widths = (0.0, 1.0, 2.0, 3.0)
    timed = [schedule(a=width) for width in (*widths, 5.0)]
    some, more = (ScheduleModel(timed, [1.3, 1.2, 1.1, 1.0, hopeless]) for hopeless in (4.0, 4000.0))
    assert np.array_equal(some.predict(timed)[0], more.predict(timed)[0])


def test_equal_times_an_unknown_func_and_many_samples_are_no_trouble() -> None:
    flat = ScheduleModel([schedule(a=float(width)) for width in range(5)], [2.0] * 5)
    assert flat.predict([schedule(a=9.0, unknown=1.0)])[0] == pytest.approx(np.log(2.0))
    many = [(a + step / 100, b) for a, b in GRID for step in range(10)]
    model = ScheduleModel([schedule(a=a, b=b) for a, b in many], [time_ms(*each) for each in many])
    assert abs(float(model.predict([schedule(a=3.0, b=1.0)])[0][0])) < 0.05
    assert model.expectation([schedule(a=1.0, b=1.0)]).most_promising(3) == [0]
