"""What devices have answered; that a device's worker is lost is an answer, too."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TypeGuard, TypeVar

from autotune_loop.execute.device_session import Timing
from devices.device_trouble import DeviceTrouble
from devices.timing.measure import device_failure
from devices.timing.measurement import MeasureFailure, MeasureFailureReason, Measurement
from targets.errors import DeviceError

_T = TypeVar("_T", Timing, Timing | None)


def timing_of(device: str, symbol: str, done: Future[_T]) -> _T | Timing:
    """The result of timing; if the device's worker is lost, a failure of the device."""
    try:
        return done.result()
    except DeviceTrouble as trouble:
        return Timing(device_failure(symbol, device, trouble, under_way=False), 0.0)


def boot_of(done: Future[str | DeviceError]) -> str | DeviceError:
    """What identifies the time since a device was switched on; or its trouble."""
    try:
        return done.result()
    except DeviceTrouble as trouble:
        return trouble


def is_device_failure(result: Measurement | MeasureFailure) -> TypeGuard[MeasureFailure]:
    """Whether the device failed, and not the schedule."""
    return isinstance(result, MeasureFailure) and result.reason is MeasureFailureReason.DEVICE
