"""Before a winner is announced: the best candidates and the default are timed again, taking turns."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from autotune_loop import tasks
from autotune_loop.batch_measurer import ArgsetReference
from autotune_loop.deadline import Deadline
from autotune_loop.engine import Engine
from autotune_loop.events import Listener, PlayOff
from autotune_loop.run_store import RunStore
from devices.measure_settings import MeasureSettings
from devices.measurement import Measurement
from targets.errors import SdkError
from targets.executable import KernelObject
from targets.stop_signal import StopSignal

# Turns of a play-off: the first number always, the second where time allows.
MIN_TURNS = 2
MAX_TURNS = 5


@dataclass(frozen=True)
class PlayOffTime:
    """A contender's time over all its turns."""

    symbol: str
    median_ms: float
    spread_ms: float


def play_off(
    engine: Engine,
    store: RunStore,
    settings: MeasureSettings,
    contenders: Sequence[KernelObject],
    reference: ArgsetReference,
    argset_index: int,
    deadline: Deadline,
    listen: Listener,
    stop: StopSignal,
) -> list[PlayOffTime]:
    """Time the contenders in turns, so that a drift of the device meets all alike; fastest first.

    A contender that fails in any turn is out. Past the deadline no further turn begins. Empty when the run is stopped
    before the end.
    """
    present = [c for c in contenders if c.object_path.is_file()]
    output = store.work / "executables" / f"play_off_{argset_index}"
    output.parent.mkdir(parents=True, exist_ok=True)
    executable = engine.submit_build(tasks.link, present, output).result()
    if isinstance(executable, SdkError):
        raise executable
    turns_s: dict[str, list[float]] = {c.name: [] for c in present}
    for turn in range(MAX_TURNS):
        if turn >= MIN_TURNS and deadline.within(0.0):
            break
        listen(PlayOff(argset_index, len(turns_s), turn + 1, MAX_TURNS))
        for symbol in list(turns_s):
            result, held_s = engine.submit_measure(
                tasks.measure, executable, symbol, settings, reference.file, reference.tolerance
            ).result()
            if isinstance(result, Measurement):
                store.database.add_measurement(result, "play-off", held_s)
                turns_s[symbol].append(result.median_s)
            elif not stop.is_set():
                del turns_s[symbol]
            if stop.is_set():
                return []
    engine.submit_measure(tasks.forget, executable).result()
    times = [_summary(symbol, values_s) for symbol, values_s in turns_s.items()]
    return sorted(times, key=lambda time: time.median_ms)


def _summary(symbol: str, values_s: list[float]) -> PlayOffTime:
    middle = statistics.median(values_s)
    spread = 1.4826 * statistics.median(abs(value - middle) for value in values_s)
    return PlayOffTime(symbol, middle * 1e3, spread * 1e3)
