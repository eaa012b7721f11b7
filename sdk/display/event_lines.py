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
from halide_autotune.sdk.display.quantities import count_text, duration_text, range_text, speed_up_text, time_text
from halide_autotune.sdk.display.run_progress import RunProgress

_TELLING_STAGE_S = 0.05


def event_lines(event: Event, progress: RunProgress) -> list[str]:
    """Return the lines to print for an event that `progress` has already added; mostly none.

    Only the first failure of a kind has a line; the lines of the batches count the others.
    """
    match event:
        case RunStarted():
            return _run_lines(event)
        case Notice():
            top, *rest = event.text.splitlines() or [""]
            return [f"warning: {top}" if event.warning else top, *rest]
        case BestImproved():
            return [_improved_line(event, progress)]
        case SampleFailed():
            first = progress.failures[f"{event.stage}: {event.reason}"] == 1
            return [f"failed, {event.stage}: {_one_line(event.message)}"] if first else []
        case Trained():
            return [_trained_line(event)]
        case BatchDone():
            return [_batch_line(event, progress)]
        case DeviceChanged() | FarmQueue():
            return [_one_line(event.text)]
        case PlayOff():
            others = count_text(event.contenders, "schedule")
            line = f"play-off: timing the best again beside the default, {others} in turns"
            if event.size:
                line = f"play-off at {event.size}: timing the fastest there beside the winner, {others} in turns"
            return [line + _argset(event.task_index, progress)] if event.turn == 1 else []
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
    return [
        f"{event.generator} for {event.target} on {event.device}, {threads}, {clock_message(event.clock)}",
        f"{count_text(length.rounds, 'round')} of {length.batch_size}{sets}{budget}; {verb} {event.run_folder}",
    ]


def _improved_line(event: BestImproved, progress: RunProgress) -> str:
    mark = Clock(event.clock).mark
    between = "" if event.range_ms is None else f", {range_text(event.range_ms)}"
    line = f"best {time_text(event.median_ms, mark)} ({timings_text(event.timings)}{between})"
    if event.default_ms is None:
        line += ", the default is not timed"
    elif event.median_ms == event.default_ms:
        line += ", the default schedule"
    else:
        default = time_text(event.default_ms, mark)
        line += f", {speed_up_text(event.default_ms / event.median_ms)} as the default ({default})"
    which = set_text(event.parameters) or event.sample
    return f"{line}; {which}{_argset(event.task_index, progress)}"


def _trained_line(event: Trained) -> str:
    verdict = "accepted" if event.accepted else "rejected, the old weights stay"
    samples = count_text(event.samples, "schedule")
    return f"trained on {samples} in {duration_text(event.duration_s)}: {verdict}; {event.reason}"


def _batch_line(event: BatchDone, progress: RunProgress) -> str:
    rounds = progress.started.length.rounds if progress.started is not None else "?"
    record = progress.batches[-1]
    # With several tasks, the number of rounds of each is not known in advance.
    argset = _argset(event.task_index, progress)
    name = f"round {event.round_index + 1}{argset or f' of {rounds}'}"
    parts = [f"{name}: {event.measured} timed, {event.failed} failed"]
    if record.best_ms is not None and record.median_ms is not None:
        clock = progress.started.clock if progress.started is not None else Clock.WALL.value
        mark = Clock(clock).mark
        parts.append(f"fastest timing {time_text(record.best_ms, mark)}, median {time_text(record.median_ms, mark)}")
    if record.rank_correlation is not None:
        parts.append(f"rank correlation with the prediction {record.rank_correlation:.2f}")
    stages = [f"{k} {duration_text(s)}" for k, s in event.stages_s.items() if s >= _TELLING_STAGE_S]
    return "; ".join([*parts, ", ".join(stages)] if stages else parts)


def _argset(task_index: int, progress: RunProgress) -> str:
    several = progress.started is not None and progress.started.length.tasks > 1
    return f", argument set {task_index + 1}" if several else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())
