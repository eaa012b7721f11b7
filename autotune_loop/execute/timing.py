"""What comes back from a device for one schedule."""

from __future__ import annotations

from dataclasses import dataclass

from devices.timing.measurement import MeasureFailure, Measurement
from targets.build.executable import Executable


@dataclass(frozen=True)
class ReferenceRun:
    """How the outputs that all others are compared with get onto a device.

    Attributes:
        executable: has the reference's kernel; kept for the whole run, since a device may need it again.
        symbol: that kernel.
        file: the name that the outputs have on the device.
        limit_s: how long one run of it may take.
        others: further kernels of the executable, which several boards are compared by.
    """

    executable: Executable
    symbol: str
    file: str
    limit_s: float
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Timing:
    """A schedule's result on one device.

    Attributes:
        held_s: seconds that it held the device.
        epoch: names a stretch of the device's life in which its times can be compared with each other.
        reference: the reference's own time in that epoch; None where there is none.
        others: those of the kernels that boards are compared by beside it.
    """

    result: Measurement | MeasureFailure
    held_s: float
    epoch: str = ""
    reference: Measurement | None = None
    others: tuple[Measurement, ...] = ()
