"""What each Func of a kernel takes, by Halide's sampling profiler: its report by the runner, read and checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from halide_autotune.devices.timing.measure import Session, ask_kernel
from halide_autotune.devices.timing.measurement import MeasureFailure, MeasureFailureReason, Seconds
from halide_autotune.devices.timing.report import read_event
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.values.checks import Unfit, any_text, list_of, number, whole_number
from halide_autotune.targets.values.records import record

# The feature of a Halide target with which kernels can be asked.
PROFILE_FEATURE = "profile"
_DURATION_S = 1.0
MOST_FUNCS, _LONGEST_NAME_CHARACTERS = 10_000, 200
# What the profiler has seen less of than this, it has not seen.
_LEAST_SEEN_S = 1e-12

_bytes = whole_number(0, 2**62)


def func_name(value: object) -> str:
    """A value of a device's report that is to be the name of a Func.

    Raises:
        Unfit: it is none.
    """
    text = any_text(value)
    if not text.isprintable() or not 0 < len(text) <= _LONGEST_NAME_CHARACTERS:
        raise Unfit("the name of a Func")
    return text


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

    name: Annotated[str, func_name]
    time_s: Annotated[float, number(0, 1e6)]
    threads: Annotated[float, number(0, 1e5)]
    peak_bytes: Annotated[int, _bytes]
    stack_bytes: Annotated[int, _bytes]


@dataclass(frozen=True)
class FuncTimes:
    """A kernel's calls under the profiler.

    Attributes:
        call_s: what a call took; the profiler itself makes it longer.
        looks: how often the profiler looked: shares are as precise as that.
        funcs: the slowest first; inlined ones count as those that call them.
    """

    kernel: Annotated[str, any_text]
    device: Annotated[str, any_text]
    call_s: Seconds
    looks: Annotated[int, whole_number(0, 2**31 - 1)]
    funcs: Annotated[tuple[FuncTime, ...], list_of(record(FuncTime, passes_unknown=True), most=MOST_FUNCS)]


@dataclass(frozen=True)
class _Func:
    name: Annotated[str, func_name]
    call_s: Annotated[float, number(0, 1e6)]
    threads: Annotated[float, number(0, 1e5)]
    peak_bytes: Annotated[int, _bytes]
    stack_bytes: Annotated[int, _bytes]


@dataclass(frozen=True)
class _Report:
    """The runner's event `funcs`."""

    call_s: Seconds
    looks: Annotated[int, whole_number(0, 2**31 - 1)]
    funcs: Annotated[tuple[_Func, ...], list_of(record(_Func, passes_unknown=True), most=MOST_FUNCS)]


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
    question = ("--by-func", repr(_DURATION_S))
    events = ask_kernel(session, executable, kernel, question, "funcs", reference=reference, limit_s=limit_s, stop=stop)
    if isinstance(events, MeasureFailure):
        return events
    device = session.device
    report = read_event("funcs", _Report, events)
    # Calls during which it did not look count for none of them.
    seen_s = 0.0 if report is None else sum(one.call_s for one in report.funcs)
    if report is None or seen_s < _LEAST_SEEN_S:
        trouble = "has no usable times of Funcs." if report is None else "has none: its calls are too short to be seen."
        message = f"The profiler's report on {device.name} {trouble}"
        return MeasureFailure(kernel, device.name, MeasureFailureReason.BAD_REPORT, message, "")
    scale = report.call_s / seen_s
    funcs = [
        FuncTime(one.name, one.call_s * scale, one.threads, one.peak_bytes, one.stack_bytes) for one in report.funcs
    ]
    slowest_first = tuple(sorted(funcs, key=lambda one: -one.time_s))
    return FuncTimes(kernel, device.name, report.call_s, report.looks, slowest_first)
