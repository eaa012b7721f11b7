"""Events as lines of a log, without the progress in between."""

from __future__ import annotations

from halide_autotune.autotune_loop.events import (
    BatchDone,
    BestImproved,
    DeviceChanged,
    Event,
    FarmQueue,
    Notice,
    PlayOff,
    RunStarted,
    SampleFailed,
    Trained,
)
from halide_autotune.autotune_loop.parameters.space import set_text
from halide_autotune.autotune_loop.store.published import timings_text
from halide_autotune.devices.device import Clock
from halide_autotune.sdk.display.quantities import count_text, duration_text, rate_text, speed_up_text
from halide_autotune.sdk.display.run_progress import RunProgress

_TELLING_STAGE_S = 0.05


def event_lines(event: Event, progress: RunProgress, *, verbose: bool = False) -> list[str]:
    """Return the lines to print for an event that `progress` has already added; mostly none.

    A round has one line. Only the first failure of a kind has a line; those of the rounds count the others.

    Args:
        verbose: also those of every new best and training, and of what a round did.
    """
    match event:
        case RunStarted():
            return _run_lines(event)
        case Notice():
            top, *rest = event.text.splitlines() or [""]
            return [f"warning: {top}" if event.warning else top, *rest]
        case BestImproved() if verbose:
            return [_improved_line(event, progress)]
        case SampleFailed():
            first = progress.failures[f"{event.stage}: {event.reason}"] == 1
            return [f"failed, {event.stage}: {_one_line(event.message)}"] if first else []
        case Trained() if verbose:
            return [_trained_line(event)]
        case BatchDone():
            return [_round_line(event, progress), *(_round_details(event, progress) if verbose else [])]
        case DeviceChanged() | FarmQueue():
            return [_one_line(event.text)]
        case PlayOff():
            return [_play_off_line(event, progress)] if event.turn == 1 else []
    return []


def clock_message(clock: str) -> str:
    """Return what a run's times are; times that are not a device's are in capitals."""
    known = Clock(clock)
    return known.words if known.is_device_time else known.words.upper()


def _run_lines(event: RunStarted) -> list[str]:
    threads, length = count_text(event.parallelism, event.parallel_unit), event.length
    budget = f", at most {duration_text(length.budget_s)}" if length.budget_s is not None else ""
    sets = f", {length.tasks} argument sets" if length.tasks > 1 else ""
    verb = "resumes" if event.resumed else "writes"
    rounds = f"{count_text(length.rounds, 'round')} of {length.batch_size}{sets}{budget}"
    return [
        f"{event.generator} for {event.target} on {event.device}, {threads}, {clock_message(event.clock)}",
        f"{rounds}; × is over the default; {verb} {event.run_folder}",
    ]


def _improved_line(event: BestImproved, progress: RunProgress) -> str:
    mark, unit = Clock(event.clock).mark, progress.unit(event.task_index)
    between = "" if event.range_ms is None else f", {' to '.join(unit.text(each_ms) for each_ms in event.range_ms)}"
    line = f"best {unit.text(event.median_ms, mark)} ({timings_text(event.timings)}{between})"
    if event.default_ms is None:
        line += ", the default is not timed"
    elif event.median_ms == event.default_ms:
        line += ", the default schedule"
    else:
        default = unit.text(event.default_ms, mark)
        line += f", {speed_up_text(event.default_ms / event.median_ms)} as the default ({default})"
    which = set_text(event.parameters) or event.sample
    return f"{line}; {which}{_argset(event.task_index, progress)}"


def _trained_line(event: Trained) -> str:
    verdict = "accepted" if event.accepted else "rejected, the old weights stay"
    samples = count_text(event.samples, "schedule")
    return f"trained on {samples} in {duration_text(event.duration_s)}: {verdict}; {event.reason}"


def _round_line(event: BatchDone, progress: RunProgress) -> str:
    """As 'round 3/100  best 4.470 ms (2.85×)  32 timed  1 failed  11/min'."""
    name = f"round {event.round_index + 1}"
    if progress.started is not None:
        tasks, rounds = progress.started.length.tasks, progress.started.length.rounds
        # With several argument sets, the number of rounds of each is not known in advance.
        name += f"/{rounds}" if tasks == 1 else f" of set {event.task_index + 1}/{tasks}"
    parts = [name, _best_so_far(event.task_index, progress), f"{event.measured} timed"]
    if event.failed:
        parts.append(f"{event.failed} failed")
    if progress.samples_per_minute is not None:
        parts.append(rate_text(progress.samples_per_minute))
    return "  ".join(parts)


def _best_so_far(task_index: int, progress: RunProgress) -> str:
    standing = progress.standings.get(task_index)
    if standing is None or standing.best_ms is None:
        return "nothing timed yet"
    gain = "" if standing.speed_up is None else f" ({standing.speed_up:.2f}×)"
    return f"best {progress.unit(task_index).text(standing.best_ms, progress.mark)}{gain}"


def _round_details(event: BatchDone, progress: RunProgress) -> list[str]:
    """Its own fastest and median, how well they were predicted, and where its time went."""
    record, unit = progress.batches[-1], progress.unit(event.task_index)
    parts = []
    if record.best_ms is not None and record.median_ms is not None:
        parts.append(
            f"fastest {unit.text(record.best_ms, progress.mark)}, median {unit.text(record.median_ms, progress.mark)}"
        )
    if record.rank_correlation is not None:
        parts.append(f"rank correlation {record.rank_correlation:.2f}")
    stages = ", ".join(f"{k} {duration_text(s)}" for k, s in event.stages_s.items() if s >= _TELLING_STAGE_S)
    told = "; ".join(filter(None, [*parts, stages]))
    return [f"  {told}"] if told else []


def _play_off_line(event: PlayOff, progress: RunProgress) -> str:
    others = count_text(event.contenders, "schedule")
    line = f"play-off: timing the best again beside the default, {others} in turns"
    if event.size:
        line = f"play-off at {event.size}: timing the fastest there beside the winner, {others} in turns"
    return line + _argset(event.task_index, progress)


def _argset(task_index: int, progress: RunProgress) -> str:
    several = progress.started is not None and progress.started.length.tasks > 1
    return f", argument set {task_index + 1}" if several else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())
