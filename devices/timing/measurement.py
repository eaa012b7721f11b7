"""The result of timing one schedule."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Annotated

import msgspec

from halide_autotune.devices.device import Clock
from halide_autotune.devices.device_trouble import TroubleKind
from halide_autotune.devices.timing.machine_signs import MachineSigns
from halide_autotune.targets.values.checks import number

# Where most repetitions are disturbed, the rest are suspect.
_MOST_SHARE = 0.7
# Times outside these are a fault of who has told them, whatever the kernel: for `record`, and for a message by msgspec.
Seconds = Annotated[float, number(1e-9, 1e6), msgspec.Meta(ge=1e-9, le=1e6)]
Repetitions = Annotated[tuple[Seconds, ...], msgspec.Meta(min_length=1)]


class MeasureFailureReason(Enum):
    """Why a schedule has no time."""

    WRONG_OUTPUT = "wrong output"
    CRASHED = "crashed"
    TIMED_OUT = "timed out"
    HALIDE_ERROR = "Halide error"
    OUT_OF_MEMORY = "out of memory"
    BAD_REPORT = "unreadable report"
    WRONG_ARGUMENTS = "wrong arguments"
    DEVICE = "device trouble"
    KILLS_DEVICE = "kills devices"
    STOPPED = "stopped"


@dataclass(frozen=True)
class Beside:
    """The kernel that another one was timed in alternation with.

    Attributes:
        kernel: its symbol.
        repetitions_s: seconds of one call, for every repetition.
        disturbed: for every repetition, whether other load took a core away meanwhile.
        was_first: for every pair of repetitions, whether it ran before the other kernel.
    """

    kernel: str
    repetitions_s: Repetitions
    disturbed: tuple[bool, ...]
    was_first: tuple[bool, ...]

    @property
    def median_s(self) -> float:
        """Median of the repetitions that count."""
        return statistics.median(_undisturbed(self.repetitions_s, self.disturbed))


@dataclass(frozen=True)
class ReshapedOutput:
    """An output of which a kernel computes more or less than the reference; shapes are as in an option --size.

    Attributes:
        name: of the output.
        computed: what the kernel computes.
        reference: what the reference was asked for.
        common: where the two were compared.
    """

    name: str
    computed: str
    reference: str
    common: str


@dataclass(frozen=True)
class Measurement:
    """The time of one schedule on one device. Disturbed repetitions do not count, as long as there are others.

    Attributes:
        kernel: its symbol.
        device: the device's name.
        clock: what it was timed with.
        repetitions_s: seconds of one call, for every repetition.
        stopped_by: why repeating ended: 'precision', 'slower', 'time', 'repetitions' or 'gave_up'.
        output_checked: the output was compared with the reference's.
        canary_s: the canary's times right before and after; empty where the device has none.
        factor: multiplied with it, its times are on the run's scale: they compare with those of the run's other
            measurements, on whatever device and at whatever moment.
        disturbed: for every repetition, whether other load took a core away meanwhile; empty if nobody looked.
        beside: what it was timed in alternation with; None if it was timed alone.
        reshaped: the outputs that have another shape than the reference's.
        machine: what else the machine did meanwhile; None if it does not tell.
    """

    kernel: str
    device: str
    clock: Clock
    repetitions_s: Repetitions
    stopped_by: str
    output_checked: bool
    canary_s: tuple[Seconds, ...] = ()
    factor: Annotated[float, msgspec.Meta(ge=1e-9, le=1e9)] = 1.0
    disturbed: tuple[bool, ...] = ()
    beside: Beside | None = None
    reshaped: tuple[ReshapedOutput, ...] = ()
    machine: MachineSigns | None = None

    @property
    def is_consistent(self) -> bool:
        """Whether it says as much of each repetition: a measurement that came in a message need not."""
        count = len(self.repetitions_s)
        pairs = () if self.beside is None else (self.beside.repetitions_s, self.beside.disturbed, self.beside.was_first)
        return len(self.disturbed) in (0, count) and all(len(values) == count for values in pairs)

    @property
    def undisturbed_s(self) -> tuple[float, ...]:
        """The repetitions that count."""
        return tuple(_undisturbed(self.repetitions_s, self.disturbed))

    @property
    def median_s(self) -> float:
        """Median of the repetitions."""
        return statistics.median(self.undisturbed_s)

    @property
    def comparable_median_s(self) -> float:
        """The median on the run's scale."""
        return self.median_s * self.factor

    @property
    def log_ratios(self) -> tuple[float, ...]:
        """Logarithms of its time over that of the kernel beside it, for pairs that count; empty if timed alone."""
        if self.beside is None:
            return ()
        other = self.beside
        logs = [math.log(own_s / s) for own_s, s in zip(self.repetitions_s, other.repetitions_s, strict=True)]
        return tuple(_undisturbed(logs, self.disturbed_marks))

    @property
    def disturbed_marks(self) -> tuple[bool, ...]:
        """For every repetition, or pair of them, whether it does not count."""
        if self.beside is None:
            return self.disturbed
        return tuple(one or two for one, two in zip(self.disturbed, self.beside.disturbed, strict=False))

    @property
    def is_disturbed(self) -> bool:
        """Whether one of the kernels was disturbed in most of its repetitions, or may have been in all, unseen."""
        marks = [self.disturbed] if self.beside is None else [self.disturbed, self.beside.disturbed]
        is_shared = self.machine is not None and self.machine.is_shared
        return is_shared or any(sum(one) > _MOST_SHARE * len(one) for one in marks)

    @property
    def ratio(self) -> float | None:
        """Its time as a multiple of the other kernel's; None if it was timed alone.

        The median over the pairs of which neither was disturbed. Without such a pair it is the ratio of the medians of
        what was not disturbed; where that is nothing of one kernel, it is the median over all pairs.
        """
        if self.beside is None:
            return None
        marks = self.disturbed_marks
        has_pairs = not marks or not all(marks)
        if has_pairs or all(self.disturbed) or all(self.beside.disturbed):
            return math.exp(statistics.median(self.log_ratios))
        return self.median_s / self.beside.median_s

    @property
    def beside_median_s(self) -> float | None:
        """The other kernel's median; None if it was timed alone."""
        return None if self.beside is None else self.beside.median_s

    @property
    def minimum_s(self) -> float:
        """The fastest repetition."""
        return min(self.undisturbed_s)

    @property
    def quarter_s(self) -> float:
        """What a quarter of the repetitions are below."""
        repetitions_s = sorted(self.undisturbed_s)
        return repetitions_s[(len(repetitions_s) - 1) // 4]

    @property
    def spread_s(self) -> float:
        """The median distance from the median, scaled to a standard deviation of normal noise."""
        middle = self.median_s
        return 1.4826 * statistics.median(abs(t - middle) for t in self.undisturbed_s)


def _undisturbed(values: Sequence[float], disturbed: Sequence[bool]) -> Sequence[float]:
    return [value for value, mark in zip(values, disturbed, strict=False) if not mark] or values


@dataclass(frozen=True)
class MeasureFailure:
    """A schedule without a time.

    Attributes:
        message: what happened, for the user.
        log: the end of the runner's output.
        trouble: what is wrong with the device, where the reason is DEVICE.
        under_way: the device went away while the schedule was running on it.
    """

    kernel: str
    device: str
    reason: MeasureFailureReason
    message: str
    log: str
    trouble: TroubleKind | None = None
    under_way: bool = False
