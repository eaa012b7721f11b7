"""A timing as a farm's worker sends it: read in bounds, and checked to be what was asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Annotated

import msgspec

from halide_autotune.autotune_loop.execute.device_session import Timing
from halide_autotune.autotune_loop.farm.told import BadMessageError, read_told
from halide_autotune.devices.device import Clock
from halide_autotune.devices.timing.machine_signs import MachineSigns
from halide_autotune.devices.timing.measurement import MeasureFailure, Measurement
from halide_autotune.devices.timing.measurement_at_sizes import by_size, over_sizes
from halide_autotune.targets.values.texts import printable

DurationS = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
"""How long a message says that something took."""
_Name = Annotated[str, msgspec.Meta(max_length=400)]


class TimingMessage(msgspec.Struct, frozen=True):
    """A timing; a measurement is told by size, as `by_size` has it."""

    measurement: dict[_Name, Measurement]
    failure: MeasureFailure | None
    held_s: DurationS
    epoch: _Name
    references: tuple[dict[_Name, Measurement], ...]
    alone: str

    @classmethod
    def wrapped(cls, timing: Timing) -> TimingMessage:
        """What is sent of a timing."""
        result = timing.result
        measurement = {} if isinstance(result, MeasureFailure) else by_size(result)
        failure = result if isinstance(result, MeasureFailure) else None
        references = tuple(by_size(one) for one in timing.references)
        return cls(measurement, failure, timing.held_s, timing.epoch, references, timing.alone)

    def unwrapped(self) -> Timing:
        """The timing.

        Raises:
            BadMessageError: it cannot be one.
        """
        failure = None if self.failure is None else replace(self.failure, message=printable(self.failure.message))
        result = _as_measured(self.measurement) if self.measurement else failure
        if result is None or not all(self.references):
            raise BadMessageError("A worker has sent a timing without a result.")
        references = tuple(_as_measured(at_sizes) for at_sizes in self.references)
        return Timing(result, self.held_s, printable(self.epoch), references, printable(self.alone))


def check_asked(timing: Timing, device: str, symbol: str, clock: Clock, sizes: Collection[str]) -> None:
    """Check that a timing is of what was asked for.

    Args:
        sizes: the names of the sizes that the run times at.

    Raises:
        BadMessageError: it is of another schedule, device, clock or sizes.
    """
    measured = [one for one in (timing.result, *timing.references) if isinstance(one, Measurement)]
    if timing.result.kernel != symbol or any(one.device != device for one in (timing.result, *timing.references)):
        raise BadMessageError(f"A worker has sent the time of something else than {symbol} on {device}.")
    if any(set(by_size(one)) != set(sizes) for one in measured):
        raise BadMessageError(f"A worker has timed {symbol} at other sizes than the run's.")
    if any(part.clock is not clock for one in measured for part in by_size(one).values()):
        raise BadMessageError(f"A worker has timed {symbol} with another clock than the run's.")


def _as_measured(at_sizes: Mapping[str, Measurement]) -> Measurement:
    for one in at_sizes.values():
        if not one.is_consistent:
            raise BadMessageError("A worker has sent a timing whose parts do not fit together.")
        if one.machine is not None:
            read_told(MachineSigns, one.machine)
    return over_sizes(at_sizes)
