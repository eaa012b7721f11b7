"""What each Func of a kernel loads and stores in a call, counted by Halide's tracing: the runner's report, checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from halide_autotune.devices.timing.func_times import MOST_FUNCS, func_name
from halide_autotune.devices.timing.measure import Session, ask_kernel
from halide_autotune.devices.timing.measurement import MeasureFailure, MeasureFailureReason
from halide_autotune.devices.timing.report import read_event
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.values.checks import list_of, whole_number
from halide_autotune.targets.values.records import record

# The features of a Halide target with which kernels can be asked.
COUNT_FEATURES = ("trace_loads", "trace_stores", "trace_realizations")
_MOST_DIMENSIONS = 8

_count = whole_number(0, 2**64 - 1)


def _func_or_none(value: object) -> str:
    return func_name(value) if value else ""


@dataclass(frozen=True)
class Accesses:
    """What is stored of a Func, or loaded while it is computed.

    Attributes:
        count: a vector is one.
        values: of a vector as many as it has lanes.
    """

    count: Annotated[int, _count]
    values: Annotated[int, _count]
    bytes: Annotated[int, _count]

    @property
    def values_at_once(self) -> float:
        """How many values an access has on average: 1 where nothing is in vectors."""
        return self.values / self.count if self.count else 0.0


@dataclass(frozen=True)
class FuncCounts:
    """What one call of a kernel does for a Func.

    Loads count as the loops have them: what the compiler keeps in registers is still counted.

    Attributes:
        name: as Halide names it.
        within: the Func in whose loops its storage is; empty at the root.
        loaded: of anything, while it is computed.
        stored: of the Func.
        points: how many were computed, a point of a tuple once; those of updates as well.
        realizations: how often it got storage.
        extents: of the largest realization.
        parallel_loops: how often one of its parallel loops began.
        tasks: of all those.
    """

    name: Annotated[str, _func_or_none]
    within: Annotated[str, _func_or_none]
    loaded: Accesses
    stored: Accesses
    points: Annotated[int, _count]
    realizations: Annotated[int, _count]
    extents: Annotated[tuple[int, ...], list_of(whole_number(-(2**31), 2**31 - 1), most=_MOST_DIMENSIONS)]
    parallel_loops: Annotated[int, _count]
    tasks: Annotated[int, _count]

    @property
    def realized_points(self) -> int:
        """Of the largest realization."""
        return math.prod(self.extents)


@dataclass(frozen=True)
class KernelCounts:
    """What one call of a kernel does.

    Attributes:
        funcs: those that have storage; an inlined one counts as those that call it.
        argument_bytes: of all inputs and outputs as they are called.
    """

    kernel: str
    device: str
    funcs: tuple[FuncCounts, ...]
    argument_bytes: int


@dataclass(frozen=True)
class _Buffer:
    bits: Annotated[int, whole_number(1, 64)]
    extent: Annotated[tuple[int, ...], list_of(whole_number(0, 2**31 - 1), most=_MOST_DIMENSIONS)]

    @property
    def bytes(self) -> int:
        return math.prod(self.extent) * self.bits // 8


@dataclass(frozen=True)
class _Report:
    """The runner's event `counts`."""

    funcs: Annotated[tuple[FuncCounts, ...], list_of(record(FuncCounts, passes_unknown=True), most=MOST_FUNCS)]


def count_accesses(
    session: Session,
    executable: str,
    kernel: str,
    reference: str | None,
    limit_s: float,
    stop: StopSignal | None = None,
) -> KernelCounts | MeasureFailure:
    """Compare the kernel's output with the file `reference`, and count what its Funcs load and store in that call.

    Args:
        executable: of kernels that are built with `COUNT_FEATURES`.
    """
    question = ("--count",)
    events = ask_kernel(
        session, executable, kernel, question, "counts", reference=reference, limit_s=limit_s, stop=stop
    )
    if isinstance(events, MeasureFailure):
        return events
    name = session.device.name
    report = read_event("counts", _Report, events)
    buffers = [read_event("buffer", _Buffer, [event]) for event in events if event.get("event") == "buffer"]
    if report is None or None in buffers:
        message = f"The counts of loads and stores on {name} cannot be read."
        return MeasureFailure(kernel, name, MeasureFailureReason.BAD_REPORT, message, "")
    argument_bytes = sum(buffer.bytes for buffer in buffers if buffer is not None)
    return KernelCounts(kernel, name, tuple(func for func in report.funcs if func.name), argument_bytes)
