"""The run's cost model: samples go in, weights come out, and only weights that rank better are used."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from halide_autotune.autotune_loop.candidate import TrainingSample
from halide_autotune.autotune_loop.cost_model.dataset import MIN_UNIQUE_SCHEDULES
from halide_autotune.autotune_loop.cost_model.process.child_process import ModelProcessError
from halide_autotune.autotune_loop.cost_model.process.model_process import ModelProcess
from halide_autotune.autotune_loop.cost_model.training_report import report_fields
from halide_autotune.autotune_loop.cost_model.tree_gru.training import TreeGruProblem
from halide_autotune.autotune_loop.cost_model.tree_gru.weights import TreeGruWeights
from halide_autotune.autotune_loop.events import Listener, Notice, Trained
from halide_autotune.autotune_loop.specification.run_spec import RunSpec
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.devices.local.cores import CoreTurns
from halide_autotune.targets.errors import WeightsError
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.weights.weights_file import Weights, read_weights, weights_sha256, write_weights

_WITHOUT = (
    "The run goes on without it, with the weights that it has; --resume starts it again, and `sdk retrain` learns from"
    " all samples."
)


class Learner:
    """Owns the process that TensorFlow lives in, and `samples/updated.weights`; a context manager.

    A run that tunes only parameters gives it nothing to learn from, and has no such process. Where the process is lost
    after it had started, such as when the system needs its memory, that is told, and the run goes on without it.

    Args:
        own: Halide's own weights, which find the default schedule.
        is_transferred: `start` comes from other runs, unrequested: the first samples decide whether it stays.
        turns: taken while the model computes, if this machine also measures; else None.
    """

    def __init__(
        self,
        store: RunStore,
        start: Weights,
        spec: RunSpec,
        environment: Mapping[str, str],
        turns: CoreTurns | None,
        listen: Listener,
        own: Weights,
        *,
        is_transferred: bool,
    ) -> None:
        self._store = store
        self._learn = spec.options.learn
        self._seed = spec.options.search.seed
        self._is_needed = any(task.searches for task in spec.tasks)
        self._turns = turns
        self._listen = listen
        self._own: Weights | None = None
        if not store.updated_weights.exists():
            write_weights(own, store.default_weights)
            write_weights(start, store.start_weights)
            write_weights(start, store.updated_weights)
            self._own = own if is_transferred else None
        _check_learnt(store.updated_weights)
        self._process = ModelProcess(
            num_cores=spec.parallelism,
            weights_path=store.updated_weights,
            log_path=store.folder / "model.log",
            # Temporary files of TensorFlow are deleted with the run's scratch space.
            environment={**environment, "TMPDIR": str(store.work)},
        )
        self._samples = 0
        # Kept here until the next training, so that the thread that measures never waits for the model.
        self._new: list[TrainingSample] = []
        self._lock = threading.Lock()
        self._stop = StopSignal()
        self._is_lost = False

    def __enter__(self) -> Learner:
        return self

    def start(self) -> None:
        """Start the model's process and return at once; importing TensorFlow keeps a core busy for some seconds."""
        if self._is_needed and not self._stop.is_set():
            self._process.start()

    def await_start(self, limit_s: float) -> bool:
        """Wait for the model's process; whether it has started by then."""
        return self._process.await_start(limit_s)

    def interrupt(self) -> None:
        """Kill the model's process: what is asked of it fails with a ModelProcessError, now and later."""
        self._stop.set()
        self._process.kill()

    def predict(self, featurizations: Sequence[Path]) -> list[float | None]:
        """What the newest accepted weights expect, in milliseconds; None of what they cannot be asked."""
        if not self._is_lost:
            with self._surviving(), self._turn():
                return self._process.predict(featurizations)
        return [None] * len(featurizations)

    def add_sample(self, sample: TrainingSample) -> None:
        """Keep a sample for the next training; returns at once."""
        with self._lock:
            self._new.append(sample)

    @property
    def has_new_samples(self) -> bool:
        """Whether a training would learn from anything that the last one did not; from too few, none learns."""
        return not self._is_lost and bool(self._new) and self._samples + len(self._new) >= MIN_UNIQUE_SCHEDULES

    def train(self, round_index: int) -> None:
        """Train on every sample of the run; use the new weights if they rank the held-out share no worse."""
        if not self._is_lost:
            with self._surviving():
                self._train(round_index)

    def _train(self, round_index: int) -> None:
        with self._lock:
            # Sorted, so that the same samples give the same weights in whatever order they were timed.
            new, self._new = sorted(self._new, key=lambda sample: sample.featurization_path), []
        self._samples += len(new)
        self._process.add_samples(new)
        with self._turn():
            self._check_transfer()
            report = self._process.train(self._learn, self._seed)
        sha256 = "" if report.weights is None else weights_sha256(report.weights)
        # First, so that weights that are there are recorded, even if the process is killed here.
        self._store.database.add_weights(round_index, sha256, report.accepted, report.reason, report_fields(report))
        if report.weights is not None:
            write_weights(report.weights, self._store.updated_weights)
            self._process.load_weights(self._store.updated_weights)
        before, after = report.held_out_accuracies
        self._listen(
            Trained(
                round_index=round_index,
                accepted=report.accepted,
                reason=report.reason,
                samples=self._samples,
                duration_s=report.duration_s,
                accuracy_before=before,
                accuracy_after=after,
            )
        )

    def train_tree_gru(self, problem: TreeGruProblem) -> TreeGruWeights:
        """Train networks that walk loops, of which the caller keeps what they have learnt.

        Raises:
            ModelProcessError: the process has ended, or takes too long.
        """
        with self._turn():
            return self._process.train_tree_gru(problem)

    @contextlib.contextmanager
    def _surviving(self) -> Iterator[None]:
        """Tell of the process's loss, unless it never started, or was killed because the run is to end."""
        try:
            yield
        except ModelProcessError as error:
            if self._stop.is_set() or not self._process.has_started:
                raise
            self._is_lost = True
            self._listen(Notice(f"{error.message} {_WITHOUT}", warning=True))

    def _check_transfer(self) -> None:
        """Before the first training, continue from Halide's own weights if they order the samples better."""
        own, self._own = self._own, None
        if own is None:
            return
        paths = (self._store.default_weights, self._store.start_weights)
        own_scores, transferred = (self._process.score(path) for path in paths)
        own_share, transferred_share = own_scores.pairwise_accuracy, transferred.pairwise_accuracy
        if own_share is None or transferred_share is None or own_share <= transferred_share:
            return
        write_weights(own, self._store.updated_weights)
        self._process.load_weights(self._store.updated_weights)
        self._listen(
            Notice(
                f"Halide's own weights order {own_scores.accuracy_text} of the first schedules correctly, the weights "
                f"that the run started from {transferred.accuracy_text.partition(' of ')[0]}. The run continues from "
                "Halide's."
            )
        )

    def _turn(self) -> contextlib.AbstractContextManager[object]:
        return contextlib.nullcontext() if self._turns is None else self._turns.building(self._stop)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.close()


def _check_learnt(path: Path) -> None:
    """Check the weights of a resumed run; lost ones can be learnt again from its samples."""
    try:
        read_weights(path)
    except WeightsError as error:
        raise WeightsError(
            error.message,
            next_step="Delete the file and run again with --resume: the run starts from its first weights and learns "
            "again from all its samples.",
        ) from error
