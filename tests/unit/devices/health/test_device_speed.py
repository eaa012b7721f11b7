"""What a board's canary makes of its times: they count, are timed again, or the board has another speed for good."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from halide_autotune.devices.device import Clock
from halide_autotune.devices.device_trouble import TroubleKind
from halide_autotune.devices.health import device_speed
from halide_autotune.devices.health.device_speed import DeviceSpeed
from halide_autotune.devices.timing.measurement import Beside, MeasureFailure, MeasureFailureReason, Measurement
from halide_autotune.targets.process.stop_signal import StopSignal

USUAL_S = 0.010


def canaries(*times_s: float) -> Callable[[], float]:
    """A canary that takes these times; its last one from then on."""

    def scripted() -> Iterator[float]:
        yield from times_s
        while True:
            yield times_s[-1]

    return scripted().__next__


def timed(*canary_s: float) -> Measurement:
    return Measurement("blur", "pi", Clock.WALL, (0.001,), "time", True, canary_s=canary_s)


@pytest.fixture
def speed(monkeypatch: pytest.MonkeyPatch) -> DeviceSpeed:
    monkeypatch.setattr(device_speed, "_COOL_DOWN_POLL_S", 0.0)
    speed = DeviceSpeed("pi")
    speed.begin(canaries(USUAL_S))
    return speed


def test_what_is_timed_at_another_speed_does_not_count(speed: DeviceSpeed) -> None:
    usual = timed(USUAL_S, 1.05 * USUAL_S)
    assert speed.judged(usual) is usual
    failure = speed.judged(timed(USUAL_S, 1.3 * USUAL_S))
    assert isinstance(failure, MeasureFailure) and failure.reason is MeasureFailureReason.DEVICE
    assert failure.trouble is TroubleKind.DRIFTED and failure.message.startswith("pi computed 30% slower than at")


def test_beside_another_kernel_only_another_board_does_not_count(speed: DeviceSpeed) -> None:
    pair = replace(timed(1.3 * USUAL_S), beside=Beside("best", (0.001,), (False,), (True,)))
    assert speed.judged(pair) is pair
    assert isinstance(speed.judged(replace(pair, canary_s=(1.6 * USUAL_S,))), MeasureFailure)


def test_a_device_without_a_canary_is_not_judged() -> None:
    assert DeviceSpeed("sim").judged(timed(1e3)) == timed(1e3)


def test_a_board_that_has_drifted_is_waited_for(speed: DeviceSpeed) -> None:
    hot = canaries(1.3 * USUAL_S, 1.2 * USUAL_S, USUAL_S)
    assert speed.cool_down(hot, StopSignal(), is_paired=False) is None
    assert hot() == 1.3 * USUAL_S, "it has not drifted, so its canary is not asked"
    speed.judged(timed(1.3 * USUAL_S))
    assert speed.cool_down(hot, StopSignal(), is_paired=False) is None
    assert hot() == USUAL_S, "it was asked until it was as fast as before"


def test_a_board_that_stays_slow_gets_a_new_usual_speed(speed: DeviceSpeed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_speed, "_COOL_DOWN_LIMIT_S", 0.0)
    speed.judged(timed(1.3 * USUAL_S))
    trouble = speed.cool_down(canaries(1.3 * USUAL_S), StopSignal(), is_paired=False)
    assert trouble is not None and trouble.kind is TroubleKind.DRIFTED
    assert str(trouble).startswith("pi has stayed more than 10% off its usual speed for 0 s.")
    speed.begin(canaries(1.3 * USUAL_S))
    slow = timed(1.3 * USUAL_S)
    assert speed.judged(slow) is slow
