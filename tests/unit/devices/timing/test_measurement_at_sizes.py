"""The geometric mean over sizes is what counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from halide_autotune.devices.device import Clock
from halide_autotune.devices.timing.machine_signs import MachineSigns
from halide_autotune.devices.timing.measurement import Beside, Measurement
from halide_autotune.devices.timing.measurement_at_sizes import by_size, medians_by_size_s, over_sizes

SIGNS = MachineSigns(0.5, 2, 0.75, 0.5, None, 0.25, 1.2e9, 2.4e9, None)


def timed(times_s: tuple[float, ...], other_s: float | None = None) -> Measurement:
    marks = (False,) * len(times_s)
    beside = None if other_s is None else Beside("best", (other_s,) * len(times_s), marks, marks)
    return Measurement("k", "pi", Clock.WALL, times_s, "time", True, (0.1,), disturbed=marks, beside=beside)


def test_at_one_size_it_is_the_measurement_itself() -> None:
    one = timed((1.0, 2.0))
    assert over_sizes({"": one}) is one
    assert by_size(one) == {"": one} and medians_by_size_s(one) == {}


def test_times_and_ratios_are_geometric_means() -> None:
    sizes = {"large": timed((16.0, 16.0, 20.0), 8.0), "small": timed((1.0, 1.0, 2.0), 4.0)}
    both = over_sizes(sizes)
    assert both.median_s == pytest.approx(4.0) and both.minimum_s == pytest.approx(4.0)
    assert both.ratio == pytest.approx((2.0 * 0.25) ** 0.5)
    assert both.beside_median_s == pytest.approx((8.0 * 4.0) ** 0.5)
    assert medians_by_size_s(both) == {"large": 16.0, "small": 1.0}
    assert by_size(both) == sizes
    assert both.canary_s == (0.1, 0.1) and both.repetitions_s == (16.0, 16.0, 20.0)


def test_the_spread_is_that_of_the_mean() -> None:
    times_s = (1.0, 1.1, 0.9)
    both = over_sizes({"large": timed(tuple(9 * s for s in times_s)), "small": timed(times_s)})
    share = timed(times_s).spread_s
    assert both.spread_s / both.median_s == pytest.approx(share / 2**0.5)


def test_a_kernel_that_was_alone_at_one_size_has_no_ratio() -> None:
    both = over_sizes({"large": timed((16.0,), 8.0), "small": timed((1.0,))})
    assert both.ratio is None and both.beside_median_s is None
    assert both.median_s == pytest.approx(4.0)


def test_what_holds_for_one_must_hold_for_all() -> None:
    unchecked = replace(timed((1.0,)), output_checked=False, machine=SIGNS)
    both = over_sizes({"large": replace(timed((4.0,)), machine=SIGNS), "small": unchecked})
    assert not both.output_checked
    assert both.machine is not None and both.machine.duration_s == 2 * SIGNS.duration_s


def test_a_factor_changes_only_the_time_on_the_scale() -> None:
    both = replace(over_sizes({"large": timed((16.0,)), "small": timed((1.0,))}), factor=0.5)
    assert both.median_s == pytest.approx(4.0) and both.comparable_median_s == pytest.approx(2.0)
