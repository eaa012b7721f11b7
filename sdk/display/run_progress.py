"""What is known about a run at any moment, gathered from its events."""

from __future__ import annotations

import contextlib
import math
import statistics
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from halide_autotune.autotune_loop.candidate import Measured, Origin, is_default
from halide_autotune.autotune_loop.events import (
    BatchDone,
    BestImproved,
    BuildProgress,
    DeviceChanged,
    Event,
    FarmQueue,
    Notice,
    PlayOff,
    RunStarted,
    SampleFailed,
    SampleMeasured,
    SearchProgress,
    Trained,
)
from halide_autotune.autotune_loop.parameters.space import set_text
from halide_autotune.devices.device import Clock
from halide_autotune.sdk.display.display import STOPPING
from halide_autotune.sdk.display.quantities import TimeUnit, unit_of
from halide_autotune.targets.errors import RunFolderError


@dataclass(frozen=True)
class StageProgress:
    """The progress of a stage of one batch; `wanted` is 0 until it is known."""

    round_index: int
    task_index: int
    done: int = 0
    wanted: int = 0
    note: str = ""


@dataclass(frozen=True)
class Standing:
    """The default and the best so far of one argument set.

    Attributes:
        best_range_ms: between which times the best will be found at another moment; None if nobody knows.
        best_timings: how many processes its time is the mean of.
    """

    default_ms: float | None = None
    best_ms: float | None = None
    best_range_ms: tuple[float, float] | None = None
    best_timings: int = 1
    best_sample: str = ""
    best_at_s: float | None = None

    @property
    def speed_up(self) -> float | None:
        """Default time over best time."""
        return None if self.default_ms is None or self.best_ms is None else self.default_ms / self.best_ms


@dataclass(frozen=True)
class BatchRecord:
    """A batch that is done.

    Attributes:
        done: what the run says of it.
        rank_correlation: Spearman's, of predicted with measured times; None with too few samples.
        duration_s: since the batch before it was done, or since the run started.
    """

    done: BatchDone
    best_ms: float | None
    median_ms: float | None
    rank_correlation: float | None
    duration_s: float


_NOTICES_KEPT = 50
_FEWEST_TO_CORRELATE = 3


@dataclass
class _BatchSamples:
    measured: list[SampleMeasured] = field(default_factory=list)
    ended: int = 0
    wanted: int = 0


class RunProgress:
    """Grows with every event. Not for several threads at once: the display that owns it holds a lock.

    Args:
        now: monotonic seconds; the time at which this is made counts as the start.

    Attributes:
        started: the run's own description; None before it has begun.
        stages: 'search', 'build', 'measure' and 'play-off', each as its newest batch has it.
        standings: by argument set.
        batches: those that are done, in order.
        training: the newest.
        notices: the newest, each with the seconds since the start at which it came.
        failures: count by 'stage: reason'.
        timed: schedules timed since the start; `timed_before` were already in a resumed folder.
        stopping: the user has asked the run to end.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._begun_at_s = now()
        self._batch_ends_s: list[float] = []
        self._samples: dict[tuple[int, int], _BatchSamples] = {}
        self.started: RunStarted | None = None
        self.stages: dict[str, StageProgress] = {}
        self.standings: dict[int, Standing] = {}
        self.batches: list[BatchRecord] = []
        self.training: Trained | None = None
        self.failures: Counter[str] = Counter()
        self.notices: deque[tuple[float, Notice]] = deque(maxlen=_NOTICES_KEPT)
        self.timed = 0
        self.timed_before = 0
        self.stopping = False

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return self._now() - self._begun_at_s

    @property
    def samples_per_minute(self) -> float | None:
        """Schedules timed a minute since the start; None before the first."""
        return 60 * self.timed / self.elapsed_s if self.timed else None

    @property
    def mark(self) -> str:
        """What follows each time: the mark of the run's clock."""
        return "" if self.started is None else Clock(self.started.clock).mark

    def unit(self, task_index: int) -> TimeUnit:
        """Return the unit for all times of an argument set: the default's, which is there first, else the best's."""
        standing = self.standings.get(task_index, Standing())
        return unit_of([standing.best_ms if standing.default_ms is None else standing.default_ms])

    def add(self, event: Event) -> None:
        """Add one event."""
        match event:
            case RunStarted():
                self.started = event
                if event.resumed:
                    self.add_earlier(_earlier(event.run_folder))
            case Notice() if event == STOPPING:
                self.stopping = True
            case Notice():
                self._add_notice(event)
            case SearchProgress():
                note = f"{event.duplicates} seen before" if event.duplicates else ""
                self._set("search", event.round_index, event.task_index, event.sampled, event.wanted, note)
            case BuildProgress():
                # Counts the candidates that are built or failed.
                done = min(event.built + event.failed, event.wanted)
                self._set("build", event.round_index, event.task_index, done, event.wanted)
            case SampleMeasured():
                self._measured(event)
            case SampleFailed():
                self._failed(event)
            case BestImproved():
                self._improved(event)
            case Trained():
                self.training = event
            case BatchDone():
                self._batch_done(event)
            case DeviceChanged():
                self._add_notice(Notice(event.text, warning=event.state != "in service"))
            case FarmQueue():
                self._add_notice(Notice(event.text))
            case PlayOff():
                note = f"{event.contenders} schedules in turns{event.size and f' at {event.size}'}"
                self._set("play-off", 0, event.task_index, event.turn - 1, event.turns, note)

    def add_earlier(self, rows: Sequence[Measured]) -> None:
        """Add what was timed in the folder before this run resumed it."""
        self.timed_before += len(rows)
        # One that was timed once stands behind those that were proven.
        for row in sorted(rows, key=lambda row: row.median_ms * math.exp(row.log_error)):
            task_index = row.candidate.task_index
            standing = self.standings.get(task_index, Standing())
            if row.candidate.is_default:
                standing = replace(standing, default_ms=row.median_ms)
            if standing.best_ms is None:
                name = set_text(row.candidate.parameters) or row.candidate.sample
                standing = replace(standing, best_ms=row.median_ms, best_sample=name, best_timings=row.processes)
            self.standings[task_index] = standing

    def rank_correlation(self) -> tuple[int, float] | None:
        """Return a round and the Spearman correlation of its predicted with its measured times.

        The newest batch with enough samples counts alone: times predicted by different weights, or of different
        argument sets, do not compare.
        """
        for round_index, task_index in reversed(list(self._samples)):
            value = _spearman(self._samples[round_index, task_index])
            if value is not None:
                return round_index, value
        return None

    def time_left_s(self) -> tuple[float, bool] | None:
        """Return the seconds left, and whether the budget (not the number of rounds) limits them; None if unknown."""
        if self.started is None:
            return None
        budget_s = self.started.length.budget_s
        of_budget_s = None if budget_s is None else max(0.0, budget_s - self.elapsed_s)
        of_rounds_s = self._rounds_left_s(self.started)
        if of_budget_s is not None and (of_rounds_s is None or of_budget_s <= of_rounds_s):
            return of_budget_s, True
        return None if of_rounds_s is None else (of_rounds_s, False)

    def finishing(self) -> str:
        """Return what the run still does although its budget is spent; empty before that, or without a budget."""
        budget_s = None if self.started is None else self.started.length.budget_s
        if budget_s is None or self.elapsed_s < budget_s:
            return ""
        if "play-off" in self.stages:
            play_off = self.stages["play-off"]
            return f"the play-off, turn {min(play_off.done + 1, play_off.wanted)} of {play_off.wanted}"
        if not self.timed:
            return "the start"
        measuring = self.stages.get("measure")
        if measuring is not None and (measuring.round_index, measuring.task_index) not in self._done_batches():
            return "what is being timed"
        return "the training and the files"

    def _done_batches(self) -> set[tuple[int, int]]:
        return {(batch.done.round_index, batch.done.task_index) for batch in self.batches}

    def _rounds_left_s(self, started: RunStarted) -> float | None:
        if not self._batch_ends_s:
            return None
        first, last = self._batch_ends_s[0], self._batch_ends_s[-1]
        count = len(self._batch_ends_s)
        pace_s = (last - first) / (count - 1) if count > 1 else first
        total = (started.length.rounds - self.batches[0].done.round_index) * started.length.tasks
        return max(0.0, pace_s * (total - count) - (self.elapsed_s - last))

    def _add_notice(self, notice: Notice) -> None:
        self.notices.append((self.elapsed_s, notice))

    def _set(self, stage: str, round_index: int, task_index: int, done: int, wanted: int, note: str = "") -> None:
        self.stages[stage] = StageProgress(round_index, task_index, done, wanted, note)

    def _batch(self, round_index: int, task_index: int) -> _BatchSamples:
        return self._samples.setdefault((round_index, task_index), _BatchSamples())

    def _measured(self, event: SampleMeasured) -> None:
        self.timed += 1
        batch = self._batch(event.round_index, event.task_index)
        batch.ended += 1
        batch.wanted = event.wanted
        batch.measured.append(event)
        self._set("measure", event.round_index, event.task_index, batch.ended, event.wanted)
        if is_default(event.round_index, Origin(event.origin)):
            standing = self.standings.get(event.task_index, Standing())
            self.standings[event.task_index] = replace(standing, default_ms=event.median_ms)

    def _improved(self, event: BestImproved) -> None:
        self.standings[event.task_index] = Standing(
            default_ms=event.default_ms,
            best_ms=event.median_ms,
            best_range_ms=event.range_ms,
            best_timings=event.timings,
            best_sample=set_text(event.parameters) or event.sample,
            best_at_s=self.elapsed_s,
        )

    def _failed(self, event: SampleFailed) -> None:
        self.failures[f"{event.stage}: {event.reason}"] += 1
        if event.stage == "measure":
            batch = self._batch(event.round_index, event.task_index)
            batch.ended += 1
            batch.wanted = max(batch.wanted, batch.ended)
            self._set("measure", event.round_index, event.task_index, batch.ended, batch.wanted)

    def _batch_done(self, event: BatchDone) -> None:
        before_s = self._batch_ends_s[-1] if self._batch_ends_s else 0.0
        self._batch_ends_s.append(self.elapsed_s)
        batch = self._batch(event.round_index, event.task_index)
        measured_ms = [sample.median_ms for sample in batch.measured]
        record = BatchRecord(
            done=event,
            best_ms=min(measured_ms, default=None),
            median_ms=statistics.median(measured_ms) if measured_ms else None,
            rank_correlation=_spearman(batch),
            duration_s=self._batch_ends_s[-1] - before_s,
        )
        self.batches.append(record)


def _earlier(run_folder: str) -> Sequence[Measured]:
    """The schedules timed so far in a run folder; none if it cannot be read, which the run itself reports."""
    from halide_autotune.autotune_loop.store.run_database import RunDatabase

    try:
        with contextlib.closing(RunDatabase(Path(run_folder) / "tuning.db")) as database:
            return database.measured()
    except RunFolderError:
        return ()


def _spearman(batch: _BatchSamples) -> float | None:
    pairs = [(sample.predicted_ms, sample.median_ms) for sample in batch.measured if sample.predicted_ms is not None]
    if len(pairs) < _FEWEST_TO_CORRELATE:
        return None
    # Imported here, because numpy takes a moment to import.
    import numpy

    from halide_autotune.autotune_loop.cost_model.ranking import spearman

    return spearman(*numpy.array(pairs).T)
