"""What each Func of a kernel takes, by Halide's sampling profiler: its report by the runner, read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from devices.timing.measure import Session, device_failure, failure_of, read_events
from devices.timing.measurement import MeasureFailure, MeasureFailureReason, Seconds
from targets.errors import DeviceError
from targets.process.stop_signal import StopSignal

# The feature of a Halide target with which kernels can be asked.
PROFILE_FEATURE = "profile"
_DURATION_S = 1.0
_MOST_FUNCS, _LONGEST_NAME_CHARACTERS = 10_000, 200

# What the profiler has seen less of than this, it has not seen.
_LEAST_SEEN_S = 1e-12

_Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
_Bytes = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


@dataclass(frozen=True)
class FuncTime:
    """One Func in a call of its kernel; Halide's own work, such as waiting for tasks, is a row, too.

    Attributes:
        name: as Halide names it.
        time_s: its share of the call's time; the sum over all Funcs is the call's.
        threads: that were active meanwhile, on average.
        peak_bytes: the most memory that it had at once.
        stack_bytes: the most that it had on the stack.
    """

    name: str
    time_s: float
    threads: float
    peak_bytes: int
    stack_bytes: int


@dataclass(frozen=True)
class FuncTimes:
    """A kernel's calls under the profiler.

    Attributes:
        call_s: what a call took; the profiler itself makes it longer.
        looks: how often the profiler looked: shares are as precise as that.
        funcs: the slowest first; inlined ones count as those that call them.
    """

    kernel: str
    device: str
    call_s: float
    looks: int
    funcs: tuple[FuncTime, ...]


class _Func(msgspec.Struct, frozen=True):
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=_LONGEST_NAME_CHARACTERS)]
    call_s: _Seconds
    threads: Annotated[float, msgspec.Meta(ge=0, le=1e5)]
    peak_bytes: _Bytes
    stack_bytes: _Bytes


class _Report(msgspec.Struct, frozen=True):
    """The runner's event `funcs`."""

    call_s: Seconds
    looks: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
    funcs: Annotated[tuple[_Func, ...], msgspec.Meta(max_length=_MOST_FUNCS)]


def time_funcs(
    session: Session,
    executable: str,
    kernel: str,
    reference: str | None,
    limit_s: float,
    stop: StopSignal | None = None,
) -> FuncTimes | MeasureFailure:
    """Compare the kernel's output with the file `reference`, then call it under the profiler for a second.

    Args:
        executable: of kernels that are built with `PROFILE_FEATURE`.
    """
    device = session.device
    arguments = session.kernel_arguments(kernel)
    if reference is not None:
        arguments += session.reference_arguments(reference)
    try:
        outcome = session.transport.run(executable, [*arguments, "--by-func", repr(_DURATION_S)], limit_s, stop)
    except DeviceError as error:
        return device_failure(kernel, device.name, error, under_way=True)
    events = read_events(outcome.output)
    told = next((event for event in events if event.get("event") == "funcs"), None)
    if not outcome.succeeded or told is None:
        return failure_of(device, kernel, outcome, events)
    report = _read(told)
    # Calls during which it did not look count for none of them.
    seen_s = 0.0 if report is None else sum(one.call_s for one in report.funcs)
    if report is None or seen_s < _LEAST_SEEN_S:
        trouble = "has no usable times of Funcs." if report is None else "has none: its calls are too short to be seen."
        message = f"The profiler's report on {device.name} {trouble}"
        return MeasureFailure(kernel, device.name, MeasureFailureReason.BAD_REPORT, message, outcome.output)
    scale = report.call_s / seen_s
    funcs = [
        FuncTime(one.name, one.call_s * scale, one.threads, one.peak_bytes, one.stack_bytes) for one in report.funcs
    ]
    slowest_first = tuple(sorted(funcs, key=lambda one: -one.time_s))
    return FuncTimes(kernel, device.name, report.call_s, report.looks, slowest_first)


def _read(told: Mapping[str, Any]) -> _Report | None:
    """The report, which is not to be trusted; None if it is not one."""
    try:
        report = msgspec.convert(told, _Report)
    except msgspec.ValidationError:
        return None
    return report if all(one.name.isprintable() for one in report.funcs) else None
