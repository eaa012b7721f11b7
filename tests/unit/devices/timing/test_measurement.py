"""What is made of repetitions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.devices.device import Clock
from halide_autotune.devices.timing.machine_signs import MachineSigns
from halide_autotune.devices.timing.measurement import Beside, Measurement

TIMES_S = st.lists(st.floats(1e-9, 1e6), min_size=1, max_size=40)


def measurement(times_s: list[float]) -> Measurement:
    return Measurement("k", "local", Clock.WALL, tuple(times_s), "time", True)


@given(TIMES_S)
def test_the_median_lies_between_the_extremes(times_s: list[float]) -> None:
    made = measurement(times_s)
    assert min(times_s) == made.minimum_s <= made.median_s <= max(times_s)
    assert 0 <= made.spread_s <= 1.4826 * (max(times_s) - min(times_s)) * (1 + 1e-9)


@given(TIMES_S, st.floats(1e-3, 1e3))
def test_a_scale_scales_everything(times_s: list[float], factor: float) -> None:
    made, scaled = measurement(times_s), measurement([t * factor for t in times_s])
    assert scaled.median_s == pytest.approx(made.median_s * factor)
    assert scaled.spread_s == pytest.approx(made.spread_s * factor, rel=1e-6, abs=1e-9 * scaled.median_s)


def test_one_outlier_moves_neither_median_nor_spread() -> None:
    calm = measurement([1.0, 1.1, 0.9, 1.0, 1.1, 0.9, 1.0])
    disturbed = measurement([1.0, 1.1, 0.9, 1.0, 1.1, 0.9, 1000.0])
    assert disturbed.median_s == calm.median_s and disturbed.spread_s <= 2 * calm.spread_s + 0.15


def test_disturbed_repetitions_do_not_count_as_long_as_there_are_others() -> None:
    times_s = (1.0, 9.0, 1.1, 9.0, 1.2)
    some = Measurement("k", "pi", Clock.WALL, times_s, "time", True, disturbed=(False, True, False, True, False))
    assert (some.median_s, some.minimum_s) == (1.1, 1.0)
    assert some.repetitions_s == times_s
    every = Measurement("k", "pi", Clock.WALL, times_s, "time", True, disturbed=(True,) * 5)
    assert every.median_s == 1.2


@pytest.mark.parametrize(
    ("busy_s", "has_priority", "is_disturbed"), [(2.0, False, True), (2.0, True, False), (1.0, False, False)]
)
def test_it_is_disturbed_if_others_could_take_the_cores_away(
    busy_s: float, has_priority: bool, is_disturbed: bool
) -> None:
    """A core that others always have is not missed: there is no repetition that had it."""
    machine = MachineSigns(1.0, 2, busy_s, 1.0, 0.0, None, None, None, None, has_priority)
    assert replace(measurement([1.0, 1.1]), machine=machine).is_disturbed == is_disturbed


def paired(disturbed: tuple[bool, ...], beside_disturbed: tuple[bool, ...]) -> Measurement:
    beside = Beside("y", (2.0, 2.0, 8.0), beside_disturbed, (True, False, True))
    return Measurement("k", "pi", Clock.WALL, (1.0, 8.0, 16.0), "time", True, disturbed=disturbed, beside=beside)


def test_the_ratio_is_that_of_the_pairs_that_count() -> None:
    none = (False,) * 3
    assert paired(none, none).ratio == pytest.approx(2.0)
    assert paired((False, True, False), (False, False, True)).ratio == pytest.approx(0.5)
    assert paired((True,) * 3, none).ratio == pytest.approx(2.0)
    # No pair counts, but of each kernel a repetition does.
    assert paired((False, True, True), (True, False, True)).ratio == pytest.approx(0.5)
    assert measurement([1.0]).ratio is None and measurement([1.0]).log_ratios == ()


def test_the_few_repetitions_that_count_make_the_ratio_where_most_are_disturbed() -> None:
    """Both kernels then have the times that they have alone, in whatever pairs."""
    marks, beside_marks = (True, True, True, False), (False, True, True, True)
    beside = Beside("y", (4.0, 8.0, 8.0, 8.0), beside_marks, (True,) * 4)
    some = Measurement("k", "pi", Clock.WALL, (1.0, 1.0, 1.0, 1.0), "time", True, disturbed=marks, beside=beside)
    assert some.is_disturbed and some.ratio == pytest.approx(0.25)


def test_it_is_disturbed_where_one_of_the_kernels_was_most_of_the_time() -> None:
    none, once, always = (False,) * 3, (False, True, False), (True,) * 3
    assert not paired(none, none).is_disturbed and not paired(once, (True, False, True)).is_disturbed
    assert paired(always, none).is_disturbed and paired(none, always).is_disturbed
    assert not measurement([1.0]).is_disturbed
    assert Measurement("k", "pi", Clock.WALL, (1.0,), "time", True, disturbed=(True,)).is_disturbed


@given(st.lists(st.tuples(st.floats(1e-9, 1e6), st.floats(1e-9, 1e6)), min_size=1, max_size=40))
def test_the_ratio_of_two_kernels_is_that_of_the_other_way_round_inverted(pairs: list[tuple[float, float]]) -> None:
    def ratio(own_s: tuple[float, ...], other_s: tuple[float, ...]) -> float:
        marks = (False,) * len(pairs)
        made = Measurement("k", "pi", Clock.WALL, own_s, "", True, beside=Beside("y", other_s, marks, marks))
        assert made.ratio is not None
        return made.ratio

    first_s, second_s = tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
    assert ratio(first_s, second_s) == pytest.approx(1 / ratio(second_s, first_s))


def test_only_real_time_needs_no_mark() -> None:
    assert [clock.mark for clock in Clock] == ["", " dsp", " emul", " sim"]
    assert "not a device's" not in Clock.CYCLES.words
    assert [clock for clock in Clock if clock.is_device_time] == [Clock.WALL, Clock.CYCLES]
    for clock in Clock:
        assert (Clock.words_of(clock.value), Clock.mark_of(clock.value)) == (clock.words, clock.mark)
    assert (Clock.words_of("sun"), Clock.mark_of("sun")) == ("sun time, not a device's", " sun")


ALONE = Measurement("f", "pi", Clock.WALL, (1.0, 4.0, 2.0, 9.0, 3.0), "precision", True)


def test_the_time_is_the_median_and_not_the_fastest() -> None:
    assert (ALONE.median_s, ALONE.minimum_s, ALONE.quarter_s) == (3.0, 1.0, 2.0)
    assert ALONE.spread_s == pytest.approx(1.4826), "the median distance from 3 is 1"
    assert replace(ALONE, factor=0.5).comparable_median_s == 1.5


def test_disturbed_repetitions_do_not_count_while_there_are_others() -> None:
    some = replace(ALONE, disturbed=(False, True, False, True, False))
    assert (some.median_s, some.undisturbed_s) == (2.0, (1.0, 2.0, 3.0))
    assert replace(ALONE, disturbed=(True,) * 5).median_s == 3.0


def test_beside_another_kernel_the_median_of_the_ratios_counts_and_not_the_ratio_of_the_medians() -> None:
    slow_moment = Beside("y", (1.0, 2.0, 2.0, 9.0, 1.5), (False,) * 5, (True,) * 5)
    paired = replace(ALONE, disturbed=(False,) * 5, beside=slow_moment)
    assert paired.ratio == pytest.approx(1.0) and paired.beside_median_s == 2.0
    marked = replace(paired, beside=replace(slow_moment, disturbed=(True, False, True, True, False)))
    assert marked.ratio == pytest.approx(2.0), "a pair counts if neither was disturbed"
    assert ALONE.ratio is None and ALONE.beside_median_s is None
