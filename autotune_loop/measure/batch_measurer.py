"""Time a batch on the devices and record every result at once."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace

from autotune_loop.candidate import BuiltBatch, Measured
from autotune_loop.events import Listener, SampleMeasured
from autotune_loop.execute.device_session import ReferenceRun
from autotune_loop.measure.dispatcher import Dispatcher
from autotune_loop.measure.retry_state import MeasureJob
from autotune_loop.store.run_database import NOT_DONE, FailureLog
from autotune_loop.store.run_store import RunStore
from devices.timing.measure_settings import MeasureSettings, Tolerance
from devices.timing.measurement import MeasureFailure, Measurement

# A schedule this many times slower than the best is timed only often enough to train on.
_HOPELESS_FACTOR = 4.0

# Gets the seconds that it held the device, too.
OnMeasured = Callable[[Measured, Measurement, float], None]


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


@dataclass
class BatchMeasurer:
    """Gives batches to the dispatcher and records the results.

    Attributes:
        enough: called before each measurement with the number of the batch's results; True ends the batch early.
    """

    dispatcher: Dispatcher
    store: RunStore
    settings: MeasureSettings
    listen: Listener
    enough: Callable[[int], bool]

    def __post_init__(self) -> None:
        self._failures = FailureLog(self.store.database, self.listen)
        self._best_s: dict[int, float] = {}

    def measure(self, batch: BuiltBatch, reference: TaskReference, on_measured: OnMeasured) -> tuple[int, int]:
        """Time the candidates of the batch; return how many were timed and how many failed.

        Candidates that are not begun when the batch ends early are not counted.
        """
        if batch.executable is None:
            return 0, 0
        by_symbol = {candidate.symbol: candidate for candidate in batch.candidates}
        counts = {"measured": 0, "failed": 0}

        def finish(job: MeasureJob, result: Measurement | MeasureFailure, held_s: float) -> None:
            candidate = by_symbol[job.symbol]
            if isinstance(result, Measurement):
                counts["measured"] += 1
                measured = Measured.of(candidate, result)
                self._keep(measured, result, held_s, reference)
                on_measured(measured, result, held_s)
                self._tell(measured, sum(counts.values()), len(by_symbol))
            else:
                counts["failed"] += int(result.reason.value != NOT_DONE)
                self._failures.candidate_failed(candidate, "measure", result.reason.value, result.message, result.log)
                shutil.rmtree(self.store.objects / candidate.symbol, ignore_errors=True)

        executable, task_index = batch.executable, batch.task_index
        jobs = [MeasureJob(executable, symbol, task_index, reference.run, reference.tolerance) for symbol in by_symbol]
        self.dispatcher.sense("before")
        self.dispatcher.run(jobs, self._settings_now, finish, lambda: self.enough(counts["measured"]))
        self.dispatcher.sense("after")
        self.dispatcher.forget(executable)
        executable.path.unlink(missing_ok=True)
        return counts["measured"], counts["failed"]

    def _settings_now(self, job: MeasureJob) -> MeasureSettings:
        best_s = self._best_s.get(job.task_index)
        return self.settings if best_s is None else replace(self.settings, give_up_over_s=_HOPELESS_FACTOR * best_s)

    def _keep(self, measured: Measured, measurement: Measurement, held_s: float, reference: TaskReference) -> None:
        self.store.database.add_measurement(measurement, "sample", held_s)
        self.store.write_sample(self.store.training_sample(measured, reference.pipeline_id))
        task_index = measured.candidate.task_index
        self._best_s[task_index] = min(measurement.median_s, self._best_s.get(task_index, math.inf))

    def _tell(self, measured: Measured, done: int, wanted: int) -> None:
        candidate = measured.candidate
        event = SampleMeasured(
            round_index=candidate.round_index,
            task_index=candidate.task_index,
            sample_index=candidate.sample_index,
            origin=candidate.point.origin.value,
            median_ms=measured.median_ms,
            predicted_ms=candidate.predicted_ms,
            clock=measured.clock,
            device=measured.device,
            done=done,
            wanted=wanted,
        )
        self.listen(event)
