"""Before a winner is announced: the best candidates and the default are timed again, taking turns."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autotune_loop import tasks
from autotune_loop.attempt import MeasureJob
from autotune_loop.batch_measurer import ArgsetReference
from autotune_loop.crew import Crew
from autotune_loop.deadline import Deadline
from autotune_loop.engine import Engine
from autotune_loop.events import Listener, PlayOff
from autotune_loop.run_store import RunStore
from devices.measure_settings import MeasureSettings
from devices.measurement import MeasureFailure, MeasureFailureReason, Measurement
from targets.errors import SdkError
from targets.executable import KernelObject
from targets.stop_signal import StopSignal

# Turns of a play-off: the first number always, the second where time allows.
MIN_TURNS = 2
MAX_TURNS = 5


@dataclass(frozen=True)
class PlayOffTime:
    """A contender's time over all its turns on one device.

    Attributes:
        score: its time as a share of the first contender's, the geometric mean over all devices: lower is better.
        by_device: median in milliseconds on each device.
    """

    symbol: str
    median_ms: float
    spread_ms: float
    score: float
    by_device: Mapping[str, float]


# Device → contender → its time in every turn.
_Turns = dict[str, dict[str, list[float]]]


def play_off(
    engine: Engine,
    crew: Crew,
    store: RunStore,
    settings: MeasureSettings,
    contenders: Sequence[KernelObject],
    reference: ArgsetReference,
    argset_index: int,
    deadline: Deadline,
    listen: Listener,
    stop: StopSignal,
) -> list[PlayOffTime]:
    """Time the contenders on every device in turns, so that a drift meets all alike; the best first.

    A contender that fails in any turn is out. Past the deadline no further turn begins. Empty when the run is stopped
    before the end, or no device lasts.
    """
    present = [c for c in contenders if c.object_path.is_file()]
    output = store.work / "executables" / f"play_off_{argset_index}"
    output.parent.mkdir(parents=True, exist_ok=True)
    executable = engine.submit_build(tasks.link, present, output).result()
    if isinstance(executable, SdkError):
        raise executable
    alive = [c.name for c in present]
    turns_s: _Turns = {device: {} for device in crew.in_service}

    def finish(job: MeasureJob, result: Measurement | MeasureFailure, held_s: float) -> None:
        if isinstance(result, Measurement):
            store.database.add_measurement(result, "play-off", held_s)
            if result.device in turns_s:
                turns_s[result.device].setdefault(job.symbol, []).append(result.median_s)
        elif result.reason is MeasureFailureReason.DEVICE:
            turns_s.pop(result.device, None)
        elif not stop.is_set() and job.symbol in alive:
            alive.remove(job.symbol)

    def enough() -> bool:
        return stop.is_set() or (not crew.in_service and deadline.within(0.0))

    for turn in range(MAX_TURNS):
        if turn >= MIN_TURNS and deadline.within(0.0):
            break
        listen(PlayOff(argset_index, len(alive), turn + 1, MAX_TURNS))
        jobs = [
            MeasureJob(executable, symbol, argset_index, reference.run, reference.tolerance, device)
            for device in turns_s
            for symbol in alive
        ]
        undone = crew.run(jobs, lambda job: settings, finish, enough)
        if undone or stop.is_set():
            return []
    crew.forget(executable)
    return _ranking(alive, turns_s)


def _ranking(alive: Sequence[str], turns_s: _Turns) -> list[PlayOffTime]:
    """Compare on the devices that timed every contender; the first of them gives the times that are told."""
    complete = {device: times for device, times in turns_s.items() if all(symbol in times for symbol in alive)}
    if not complete or not alive:
        return []
    medians_s = {d: {s: statistics.median(times[s]) for s in alive} for d, times in complete.items()}
    lead = next(iter(complete))
    ranking = []
    for symbol in alive:
        ratios = [by_symbol[symbol] / by_symbol[alive[0]] for by_symbol in medians_s.values()]
        middle_s = medians_s[lead][symbol]
        spread_s = 1.4826 * statistics.median(abs(value - middle_s) for value in complete[lead][symbol])
        by_device = {device: by_symbol[symbol] * 1e3 for device, by_symbol in medians_s.items()}
        score = statistics.geometric_mean(ratios)
        ranking.append(PlayOffTime(symbol, middle_s * 1e3, spread_s * 1e3, score, by_device))
    return sorted(ranking, key=lambda time: time.score)
