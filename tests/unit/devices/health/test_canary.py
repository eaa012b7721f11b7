"""A device that computes at another speed than at the start is noticed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.devices.health.canary import LARGEST_DRIFT, CanaryWatch

times_s = st.floats(min_value=1e-6, max_value=10.0)


@pytest.mark.parametrize(("canary_s", "steady"), [((0.0109,), True), ((0.0111,), False), ((0.01, 0.0088), False)])
def test_drifts_of_more_than_a_tenth_are_noticed(canary_s: tuple[float, ...], steady: bool) -> None:
    assert CanaryWatch([0.009, 0.010, 0.013]).is_steady(canary_s) is steady


def test_the_drift_is_the_largest_with_its_sign() -> None:
    watch = CanaryWatch([0.01])
    assert watch.drift((0.0101, 0.008)) == pytest.approx(-0.2)
    assert watch.drift(()) == 0.0 and watch.is_steady(())


@given(st.lists(times_s, min_size=1, max_size=7), times_s)
def test_the_baseline_itself_is_steady_and_far_times_are_not(baseline_s: list[float], factor: float) -> None:
    watch = CanaryWatch(baseline_s)
    assert watch.is_steady([watch.baseline_s])
    assert watch.is_steady([watch.baseline_s * (1 + factor)]) is (
        abs(watch.drift([watch.baseline_s * (1 + factor)])) <= LARGEST_DRIFT
    )
    assert not watch.is_steady([watch.baseline_s * (1.2 + factor)])


@pytest.mark.parametrize(
    ("canary_s", "same"), [((), True), ((0.0149, 0.0067), True), ((0.0151,), False), ((0.01, 0.0066), False)]
)
def test_another_board_is_noticed_and_another_speed_is_not(canary_s: tuple[float, ...], same: bool) -> None:
    assert CanaryWatch([0.01]).is_same_board(canary_s) is same
