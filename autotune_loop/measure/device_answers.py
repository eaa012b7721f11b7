"""What comes of what a device is asked to do: whatever goes wrong on the way is trouble of that device only."""

from __future__ import annotations

import traceback
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import TypeGuard, TypeVar

from halide_autotune.autotune_loop.execute.device_session import Timing
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.timing.measure import device_failure
from halide_autotune.devices.timing.measurement import MeasureFailure, MeasureFailureReason, Measurement
from halide_autotune.targets.errors import FarmError, SdkError
from halide_autotune.targets.values.texts import printable

_T = TypeVar("_T")
_LONGEST_REASON_CHARACTERS = 300


def answer_of(device: str, done: Future[_T]) -> _T | DeviceTrouble:
    """Wait for what a device was asked for; returns it, or the trouble that came instead.

    Raises:
        FarmError: the run, or its farm, has ended.
    """
    try:
        return done.result()
    except DeviceTrouble as trouble:
        return trouble
    except (FarmError, CancelledError):
        raise
    except SdkError as error:
        return DeviceTrouble(TroubleKind.BROKEN, error.message, next_step=error.next_step)
    except Exception as error:
        return _unexpected(device, error)


def timing_of(device: str, symbol: str, done: Future[_T]) -> _T | Timing:
    """The same for a timing, which then is a failure of the device."""
    answer = answer_of(device, done)
    if isinstance(answer, DeviceTrouble):
        return Timing(device_failure(symbol, device, answer, under_way=False), 0.0)
    return answer


def is_device_failure(result: Measurement | MeasureFailure) -> TypeGuard[MeasureFailure]:
    """Whether a schedule has no time because of its device."""
    return isinstance(result, MeasureFailure) and result.reason is MeasureFailureReason.DEVICE


def _unexpected(device: str, error: Exception) -> DeviceTrouble:
    """A fault of the SDK that something about this device has brought to light."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    reason = printable(f"{type(error).__name__}: {error}")[:_LONGEST_REASON_CHARACTERS].rstrip(".")
    where = f"{Path(place.filename).name}:{place.lineno}"
    return DeviceTrouble(
        TroubleKind.BROKEN,
        f"{device} cannot be used because of a fault of the SDK ({reason}; {where}).",
        next_step="Report it with this message; the run goes on with its other devices.",
    )
