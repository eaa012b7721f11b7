"""Time a batch on the device, one schedule at a time, and record every result at once."""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from distributed import Future

from autotune_loop import tasks
from autotune_loop.batch import BuiltBatch
from autotune_loop.candidate import Candidate
from autotune_loop.engine import Engine
from autotune_loop.events import Listener, SampleMeasured
from autotune_loop.failure_log import FailureLog
from autotune_loop.run_database import NOT_DONE
from autotune_loop.run_store import RunStore
from devices.measure_settings import MeasureSettings, Tolerance
from devices.measurement import MeasureFailure, Measurement

# One measurement runs, one waits: the device is never idle, and the give-up time stays fresh.
_WINDOW = 2
# A schedule this many times slower than the best is timed just often enough to learn from.
_HOPELESS_FACTOR = 4.0

OnMeasured = Callable[[Candidate, Measurement], None]


@dataclass(frozen=True)
class ArgsetReference:
    """The reference of an argument set.

    Attributes:
        file: its outputs, on the device; None when there is none to compare with.
        tolerance: how far an output may be from it.
        pipeline_id: what samples of this argument set are grouped by in training.
    """

    file: str | None
    tolerance: Tolerance
    pipeline_id: int


class BatchMeasurer:
    """Submits measurements to the engine and writes what comes back.

    Args:
        enough: asked before each measurement, with how many the batch has: true ends the batch early.
    """

    def __init__(
        self,
        engine: Engine,
        store: RunStore,
        settings: MeasureSettings,
        listen: Listener,
        enough: Callable[[int], bool],
    ) -> None:
        self._engine = engine
        self._store = store
        self._settings = settings
        self._listen = listen
        self._enough = enough
        self._failures = FailureLog(store.database, listen)
        self._best_s: dict[int, float] = {}

    def measure(self, batch: BuiltBatch, reference: ArgsetReference, on_measured: OnMeasured) -> tuple[int, int]:
        """Time the candidates of the batch; returns how many were timed and how many failed.

        What is not begun when the batch is ended early is not counted.
        """
        if batch.executable is None:
            return 0, 0
        waiting = deque(batch.candidates)
        under_way: deque[tuple[Candidate, Future[tuple[Measurement | MeasureFailure, float]]]] = deque()
        measured = failed = 0
        while waiting or under_way:
            while waiting and len(under_way) < _WINDOW and not self._enough(measured):
                candidate = waiting.popleft()
                under_way.append((candidate, self._submit(batch, candidate, reference)))
            if not under_way:
                break
            candidate, future = under_way.popleft()
            result, held_s = future.result()
            if isinstance(result, Measurement):
                measured += 1
                self._keep(candidate, result, held_s, reference)
                on_measured(candidate, result)
                self._tell(candidate, result, measured + failed, len(batch.candidates))
            else:
                failed += int(result.reason.value != NOT_DONE)
                self._failures.candidate_failed(candidate, "measure", result.reason.value, result.sentence, result.log)
                shutil.rmtree(self._store.objects / candidate.symbol, ignore_errors=True)
        self._engine.submit_measure(tasks.forget, batch.executable).result()
        batch.executable.path.unlink(missing_ok=True)
        return measured, failed

    def _submit(
        self, batch: BuiltBatch, candidate: Candidate, reference: ArgsetReference
    ) -> Future[tuple[Measurement | MeasureFailure, float]]:
        assert batch.executable is not None
        settings = self._settings
        best_s = self._best_s.get(candidate.argset_index)
        if best_s is not None:
            settings = replace(settings, give_up_over_s=_HOPELESS_FACTOR * best_s)
        return self._engine.submit_measure(
            tasks.measure, batch.executable, candidate.symbol, settings, reference.file, reference.tolerance
        )

    def _keep(self, candidate: Candidate, measurement: Measurement, held_s: float, reference: ArgsetReference) -> None:
        self._store.database.add_measurement(measurement, "sample", held_s)
        place = (candidate.folder, candidate.round_index, candidate.sample_index)
        self._store.write_sample(*place, measurement.median_s * 1e3, reference.pipeline_id)
        best_s = self._best_s.get(candidate.argset_index)
        if best_s is None or measurement.median_s < best_s:
            self._best_s[candidate.argset_index] = measurement.median_s

    def _tell(self, candidate: Candidate, measurement: Measurement, done: int, wanted: int) -> None:
        event = SampleMeasured(
            round_index=candidate.round_index,
            argset_index=candidate.argset_index,
            sample_index=candidate.sample_index,
            origin=candidate.point.origin.value,
            median_ms=measurement.median_s * 1e3,
            predicted_ms=candidate.predicted_ms,
            clock=measurement.clock.value,
            done=done,
            wanted=wanted,
        )
        self._listen(event)
