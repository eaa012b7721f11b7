"""The times of a run's reference, and of the kernels that boards are compared by beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from halide_autotune.devices.timing.measure import Session, measure_kernel
from halide_autotune.devices.timing.measure_settings import MeasureSettings
from halide_autotune.devices.timing.measurement import MeasureFailure, Measurement
from halide_autotune.devices.timing.measurement_at_sizes import over_sizes
from halide_autotune.devices.timing.paired_timing import NOT_THE_KERNELS_FAULT
from halide_autotune.targets.process.stop_signal import StopSignal

_TURNS = 3


def kernels_over_sizes(at_sizes: Mapping[str, Mapping[str, Measurement]]) -> tuple[Measurement, ...]:
    """The measurements of the kernels that were timed at every size, by size and kernel."""
    first, *others = at_sizes.values()
    kernels = [kernel for kernel in first if all(kernel in timed for timed in others)]
    return tuple(over_sizes({size: timed[kernel] for size, timed in at_sizes.items()}) for kernel in kernels)


def time_well(
    session: Session, executable: str, symbols: tuple[str, ...], settings: MeasureSettings, stop: StopSignal
) -> tuple[Measurement, ...] | MeasureFailure:
    """The times of the reference and of what goes with it, in that order.

    On a remote device they set the scale of all others, so they are taken several times, in turns: a drift meets all
    alike. One of the others that fails is left out.
    """
    turns: dict[str, list[Measurement]] = {symbol: [] for symbol in symbols}
    for _ in range(_TURNS if session.device.remote is not None else 1):
        for symbol in list(turns):
            timed = measure_kernel(session, executable, symbol, settings, None, stop)
            if isinstance(timed, Measurement):
                turns[symbol].append(timed)
            elif symbol == symbols[0] or timed.reason in NOT_THE_KERNELS_FAULT:
                return timed
            else:
                del turns[symbol]
    return tuple(_together(timed) for timed in turns.values())


def _together(turns: list[Measurement]) -> Measurement:
    """The middle turn, with the repetitions of all."""
    middle = sorted(turns, key=lambda turn: turn.median_s)[len(turns) // 2]
    times_s = tuple(time_s for turn in turns for time_s in turn.repetitions_s)
    return replace(middle, repetitions_s=times_s, disturbed=tuple(mark for turn in turns for mark in turn.disturbed))
