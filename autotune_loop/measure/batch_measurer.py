"""Time a batch on the devices and record every result at once."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import shutil
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from halide_autotune.autotune_loop.candidate import BuiltBatch, Candidate, Measured, mean_by_size_ms
from halide_autotune.autotune_loop.events import Listener, SampleMeasured
from halide_autotune.autotune_loop.execute.device_session import ReferenceRun
from halide_autotune.autotune_loop.measure.dispatcher import Dispatcher
from halide_autotune.autotune_loop.measure.leader_race import LeaderRace
from halide_autotune.autotune_loop.measure.retry_state import MeasureJob
from halide_autotune.autotune_loop.store.failure_log import FailureLog
from halide_autotune.autotune_loop.store.run_database import NOT_DONE
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.devices.timing.measure_settings import MeasureSettings, Tolerance
from halide_autotune.devices.timing.measurement import MeasureFailure, MeasureFailureReason, Measurement
from halide_autotune.targets.build.executable import Executable
from halide_autotune.targets.errors import WeightsError

# A schedule this many times slower than the best is timed only often enough to train on.
_HOPELESS_FACTOR = 4.0
# A schedule whose first time is over the best one by more than this factor is no leader.
_CLOSE_FACTOR = 1.25
# A first time that other load disturbed may be too long by so much.
_DISTURBED_FACTOR = 1.5
# A schedule is not repeated once it is certainly slower than the best so far by this factor, which is what a single
# time of the best may be wrong by.
_LOST_FACTOR = 1.1
# The race of the leaders takes at most this share of the time that the batch took, and has this long in any case.
_RACE_SHARE, _SHORTEST_RACE_S = 0.3, 3.0
# A schedule that holds the device this many times longer than others usually did is hopeless, and its process is
# ended: one whose calls took 260 times as long as the best one's held it for a quarter of a run. No limit is shorter
# than the second number.
_RUN_LIMIT_FACTOR, _SHORTEST_RUN_LIMIT_S = 10.0, 10.0
# Of fewer timings is not known what is usual.
_FEW_TIMINGS = 3
_NOT_THE_SCHEDULE = (MeasureFailureReason.STOPPED, MeasureFailureReason.DEVICE)
# In alternation with another kernel: so that no short disturbance decides.
_LEAST_PAIRED_S = 0.05
# From process to process a ratio differs by 4 %: to know it twice as well in one of them takes up to twice as long, and
# says hardly more.
_PAIRED_PRECISION_FACTOR = 2.0

# A measurement, and the seconds that it held the device.
OnTimed = Callable[[Measurement, float], None]
OnMeasured = Callable[[Measured], None]


@dataclass(frozen=True)
class TaskReference:
    """The reference of an argument set.

    Attributes:
        run: how its outputs get onto a device; None when there is none to compare with.
        tolerance: how far an output may be from it.
        pipeline_id: what samples of this argument set are grouped by in training.
    """

    run: ReferenceRun | None
    tolerance: Tolerance
    pipeline_id: int

    def pipeline_of(self, candidate: Candidate) -> int:
        """What a candidate's sample is grouped by: other parameters may give another pipeline."""
        values = candidate.parameters
        return joined_pipeline_id([self.pipeline_id, sorted(values.items())]) if values else self.pipeline_id


def joined_pipeline_id(parts: object) -> int:
    """The number by which training groups samples, of what tells pipelines apart, which is JSON-ready.

    It is a hash, because Halide's tools mix pipelines whose numbers are equal.
    """
    return int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest()[:4], "little") >> 1 or 1


@dataclass
class _Batch:
    """A batch that is being timed.

    Attributes:
        known_best_ms: the best time before it.
        measured, failed: candidates so far.
        best_ms: the best time so far, of this batch or before it.
        held_s: for how long each timing of the argument set has held its device.
        leaders: symbol → those that may be the best, whose times are not final.
    """

    batch: BuiltBatch
    executable: Executable
    reference: TaskReference
    known_best_ms: float
    on_timed: OnTimed
    on_measured: OnMeasured
    measured: int = 0
    failed: int = 0
    held_s: list[float] = field(default_factory=list)
    leaders: dict[str, Measured] = field(default_factory=dict)
    best_ms: float = field(init=False)
    candidates: Mapping[str, Candidate] = field(init=False)

    def __post_init__(self) -> None:
        self.best_ms = self.known_best_ms
        self.candidates = {candidate.symbol: candidate for candidate in self.batch.candidates}


@dataclass
class BatchMeasurer:
    """Gives batches to the dispatcher and records the results.

    Attributes:
        enough: called before each measurement with the number of the batch's results; True ends the batch early.
        overdue: called then; True stops the measurements under way, too.
        settles_leaders: whether those that may be the best are timed again.
    """

    dispatcher: Dispatcher
    store: RunStore
    settings: MeasureSettings
    listen: Listener
    enough: Callable[[int], bool]
    overdue: Callable[[int], bool] = lambda measured: False
    settles_leaders: bool = True

    def __post_init__(self) -> None:
        self._failures = FailureLog(self.store.database, self.listen)

    def measure(
        self, batch: BuiltBatch, reference: TaskReference, best_ms: float, on_timed: OnTimed, on_measured: OnMeasured
    ) -> tuple[int, int]:
        """Time the candidates of the batch; return how many were timed and how many failed.

        Beside a yardstick, those that may be the best are then timed again, unless that is not wanted. Candidates that
        are not begun when the batch ends early are not counted.

        Args:
            best_ms: the best time of the argument set so far; infinite if there is none.
            on_timed: called after each timing.
            on_measured: called with each candidate, once its time is final.
        """
        if batch.executable is None:
            return 0, 0
        work = _Batch(batch, batch.executable, reference, best_ms, on_timed, on_measured)
        work.held_s += self.store.database.timing_times_s(batch.task_index)
        self.dispatcher.sense("before")
        try:
            started_s = time.monotonic()
            self._run(work, list(work.candidates), "sample")
            if work.leaders:
                duration_s = max(_RACE_SHARE * (time.monotonic() - started_s), _SHORTEST_RACE_S)
                self._race(work, duration_s)
                self._confirm(work, duration_s)
        finally:
            # They have been timed, whatever ended the batch.
            for measured in work.leaders.values():
                self._keep(work, measured)
        self.dispatcher.sense("after")
        self.dispatcher.forget(batch.executable)
        batch.executable.path.unlink(missing_ok=True)
        return work.measured, work.failed

    def _run(self, work: _Batch, symbols: Sequence[str], purpose: str) -> dict[str, Measured]:
        """Time these candidates; return those that were."""
        timed: dict[str, Measured] = {}

        def finish(job: MeasureJob, result: Measurement | MeasureFailure, held_s: float) -> Callable[[], None]:
            if isinstance(result, MeasureFailure):
                return partial(self._failed, work, job.symbol, result)
            measured = self._measured(work, result, purpose, held_s)
            return partial(count, measured, result, held_s)

        def count(measured: Measured, result: Measurement, held_s: float) -> None:
            timed[measured.candidate.symbol] = measured
            work.held_s.append(held_s)
            work.on_timed(result, held_s)
            if purpose == "sample":
                self._first_time(work, measured)

        reference, task_index = work.reference, work.batch.task_index
        jobs = [
            MeasureJob(work.executable, symbol, task_index, reference.run, reference.tolerance) for symbol in symbols
        ]
        self.dispatcher.run(
            jobs,
            lambda job: self._settings_now(work),
            finish,
            lambda: self.enough(work.measured),
            lambda: self.overdue(work.measured),
        )
        return timed

    def _measured(self, work: _Batch, result: Measurement, purpose: str, held_s: float) -> Measured:
        """Record a time; beside a yardstick it tells two things: a ratio, and what the machine is like now."""
        candidate, yardstick = work.candidates[result.kernel], work.batch.yardstick
        placement = None if yardstick is None else yardstick.place(result)
        self.store.database.add_measurement(result, purpose, held_s, placement)
        if yardstick is None or placement is None:
            return Measured.of(candidate, result, None)
        if placement.reference_ms is not None:
            yardstick.scale.add(result.device, placement.reference_ms)
        measured = Measured.of(candidate, result, yardstick.scale.time_ms(placement.relative))
        return replace(measured, is_disturbed=placement.is_disturbed)

    def _settings_now(self, work: _Batch) -> MeasureSettings:
        settings = replace(self.settings, run_limit_s=self._run_limit_s(work))
        if work.best_ms < math.inf:
            settings = replace(settings, give_up_over_s=_HOPELESS_FACTOR * work.best_ms * 1e-3)
        yardstick = work.batch.yardstick
        if yardstick is None:
            return settings
        lost_over = _LOST_FACTOR * min(1.0, work.best_ms / yardstick.time_ms)
        return replace(
            settings,
            beside=yardstick.kernel.name,
            lost_over=lost_over,
            alone_without_it=True,
            min_time_s=_LEAST_PAIRED_S,
            precision=_PAIRED_PRECISION_FACTOR * self.settings.precision,
        )

    def _run_limit_s(self, work: _Batch) -> float:
        if len(work.held_s) < _FEW_TIMINGS:
            return self.settings.run_limit_s
        hopeless_s = _RUN_LIMIT_FACTOR * statistics.median(work.held_s)
        return min(self.settings.run_limit_s, max(_SHORTEST_RUN_LIMIT_S, hopeless_s))

    def _first_time(self, work: _Batch, measured: Measured) -> None:
        work.measured += 1
        if not measured.is_disturbed:
            work.best_ms = min(work.best_ms, measured.median_ms)
        correction = 1.0 if work.batch.yardstick is None else work.batch.yardstick.scale.correction
        self._tell(measured, correction * measured.median_ms, work.measured + work.failed, len(work.candidates))
        close_factor = _CLOSE_FACTOR * (_DISTURBED_FACTOR if measured.is_disturbed else 1.0)
        may_lead = self.settles_leaders and work.batch.yardstick is not None
        if may_lead and measured.median_ms <= close_factor * work.best_ms:
            work.leaders[measured.candidate.symbol] = measured
        else:
            self._keep(work, measured)

    def _failed(self, work: _Batch, symbol: str, failure: MeasureFailure) -> None:
        if symbol in work.leaders and failure.reason in _NOT_THE_SCHEDULE:
            return  # it has a time already
        candidate = work.candidates[symbol]
        # A leader has been counted as timed.
        stage = "measure" if work.leaders.pop(symbol, None) is None else "race"
        work.failed += int(failure.reason.value != NOT_DONE and stage == "measure")
        self._failures.candidate_failed(candidate, stage, failure.reason.value, failure.message, failure.log)
        shutil.rmtree(self.store.objects / symbol, ignore_errors=True)

    def _race(self, work: _Batch, duration_s: float) -> None:
        """Settle the times of those that may be the best."""
        race = LeaderRace(list(work.leaders.values()), work.known_best_ms, work.batch.round_index)
        self._settle(work, race, "race", duration_s)

    def _confirm(self, work: _Batch, duration_s: float) -> None:
        """Time the best once more if it will be the yardstick; should it fall behind, the next best."""
        asked: set[str] = set()
        while (best := _next_yardstick(work)) is not None and best.candidate.symbol not in asked:
            asked.add(best.candidate.symbol)
            self._settle(work, LeaderRace([best], math.inf, work.batch.round_index), "confirmation", duration_s)

    def _settle(self, work: _Batch, race: LeaderRace, purpose: str, duration_s: float) -> None:
        """Time again whom a race names, as long as there is time."""
        until_s = time.monotonic() + duration_s
        by_size_ms: dict[str, list[Mapping[str, float]]] = {symbol: [] for symbol in work.leaders}
        while time.monotonic() < until_s and (turn := race.next_turn()) and not self.enough(work.measured):
            timed = self._run(work, turn, purpose)
            for symbol in turn:
                race.add(symbol, timed.get(symbol))
            for symbol, measured in timed.items():
                by_size_ms[symbol].append(measured.by_size_ms)
        for symbol, (median_ms, processes) in race.settled().items():
            if symbol in work.leaders:
                work.leaders[symbol] = replace(
                    work.leaders[symbol],
                    median_ms=median_ms,
                    processes=processes,
                    is_disturbed=False,
                    by_size_ms=mean_by_size_ms(by_size_ms[symbol]),
                    is_timed_anew=purpose == "confirmation",
                )

    def _keep(self, work: _Batch, measured: Measured) -> None:
        if measured.candidate.has_features:
            pipeline_id = work.reference.pipeline_of(measured.candidate)
            # One that takes minutes, or whose features are lost, has a time all the same; a sample it cannot be.
            with contextlib.suppress(WeightsError):
                self.store.write_sample(self.store.training_sample(measured, pipeline_id))
        work.on_measured(measured)

    def _tell(self, measured: Measured, median_ms: float, done: int, wanted: int) -> None:
        candidate = measured.candidate
        event = SampleMeasured(
            round_index=candidate.round_index,
            task_index=candidate.task_index,
            sample_index=candidate.sample_index,
            origin=candidate.point.origin.value,
            median_ms=median_ms,
            predicted_ms=candidate.predicted_ms,
            clock=measured.clock,
            device=measured.device,
            done=done,
            wanted=wanted,
            parameters=candidate.parameters,
        )
        self.listen(event)


def _next_yardstick(work: _Batch) -> Measured | None:
    """The best of the batch, if it seems to be the better yardstick."""
    sound = [one for one in work.leaders.values() if not one.is_disturbed]
    best = min(sound, key=lambda one: one.median_ms, default=None)
    if best is None or work.batch.yardstick is None or best.median_ms >= work.known_best_ms:
        return None
    return best if work.batch.yardstick.is_outdone_by(best.median_ms) else None
