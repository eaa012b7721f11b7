"""The client of the process that TensorFlow lives in during a run."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from halide_autotune.autotune_loop.candidate import TrainingSample
from halide_autotune.autotune_loop.cost_model.process.child_process import ChildProcess, ModelProcessError
from halide_autotune.autotune_loop.cost_model.ranking import RankingScores
from halide_autotune.autotune_loop.cost_model.training_report import TrainingReport
from halide_autotune.autotune_loop.cost_model.tree_gru.training import TreeGruProblem
from halide_autotune.autotune_loop.cost_model.tree_gru.weights import TreeGruWeights
from halide_autotune.autotune_loop.specification.options import LearnOptions


def tensorflow_environment(environment: Mapping[str, str], threads: int) -> dict[str, str]:
    """Add TensorFlow's settings: log errors only, no GPU, at most `threads` threads.

    The model is too small to gain from a GPU and would take memory from the kernels that are measured there.
    """
    return dict(environment) | {
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "CUDA_VISIBLE_DEVICES": "-1",
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": str(threads),
    }


# Counted from `start`.
_START_LIMIT_S = 180.0
_REQUEST_LIMIT_S = 600.0
# Not resolved: what is imported has its name by the links in src/.
IMPORT_ROOT = Path(__file__).absolute().parents[4]


class ModelProcess:
    """Predicts and trains in one child process, so that TensorFlow is imported once, while the caller works on.

    Every method may be called from any thread; requests are served one after the other. After a request that fails
    because of its files the process is still usable; after a ModelProcessError it is gone, with its samples.

    Args:
        num_cores: cores of the device whose runtimes are predicted; of a GPU, its streaming multiprocessors.
        weights_path: the weights to start from; they decide the network, Adams2019's or Anderson2021's.
        log_path: receives what the child and its libraries print.
        environment: the child's environment; TensorFlow's own settings are added.
    """

    def __init__(self, num_cores: int, weights_path: Path, log_path: Path, environment: Mapping[str, str]) -> None:
        module = "halide_autotune.autotune_loop.cost_model.process.model_worker"
        self._command = [sys.executable, "-P", "-m", module, str(weights_path), str(num_cores)]
        python_path = [str(IMPORT_ROOT), environment.get("PYTHONPATH", "")]
        self._environment = tensorflow_environment(environment, threads=1)
        self._environment["PYTHONPATH"] = os.pathsep.join(filter(None, python_path))
        self._log_path = log_path
        self._lock = threading.Lock()
        self._child: ChildProcess | None = None
        self._ready = False
        self._ready_deadline_s = 0.0

    def start(self) -> None:
        """Start the child and return at once; the first request waits until it is ready, and raises WeightsError where
        the starting weights are unusable.

        Raises:
            ModelProcessError: it was started before, or the interpreter or the log cannot be opened.
        """
        with self._lock:
            if self._child is not None:
                raise ModelProcessError("The cost-model process was started twice.")
            self._child = ChildProcess(self._command, self._environment, self._log_path)
            self._ready_deadline_s = time.monotonic() + _START_LIMIT_S

    @property
    def has_started(self) -> bool:
        """Whether the child has answered that it is ready."""
        return self._ready

    def await_start(self, limit_s: float) -> bool:
        """Wait until the child is ready, or its end can be read; False if that takes longer than the limit.

        Raises:
            ModelProcessError: it was not started.
        """
        with self._lock:
            return self._ready or self._started().has_answer(min(limit_s, _START_LIMIT_S))

    def load_weights(self, path: Path) -> None:
        """Use other weights for predictions and as the start of the next training; on an error the old ones stay.

        Raises:
            WeightsError: the file is missing, damaged or for another network.
            ModelProcessError: the child ended, or took too long.
        """
        self._ask("load_weights", path)

    def predict(self, featurization_paths: Sequence[Path]) -> list[float | None]:
        """Predicted runtimes in milliseconds, in the given order; None for a file that is missing, damaged or for
        another network.

        Raises:
            ModelProcessError: the child ended, or took too long.
        """
        predictions_ms: list[float | None] = self._ask("predict", featurization_paths)
        return predictions_ms

    def add_samples(self, samples: Sequence[TrainingSample]) -> list[tuple[TrainingSample, str]]:
        """Add samples for later trainings; of equal schedules the fastest counts.

        Returns:
            The samples that were left out, each with the reason: unreadable features, another network, or a runtime
            that is not a time.

        Raises:
            ModelProcessError: the child ended, or took too long.
        """
        rejected: list[tuple[TrainingSample, str]] = self._ask("add_samples", samples)
        return rejected

    def score(self, weights_path: Path) -> RankingScores:
        """How well the weights in a file order the added samples; the weights in use do not change.

        Raises:
            WeightsError: the file is missing, damaged or for another network.
            ModelProcessError: the child ended, or took too long.
        """
        scores: RankingScores = self._ask("score", weights_path)
        return scores

    def train(self, learn: LearnOptions, seed: int) -> TrainingReport:
        """Train from the weights in use on all samples, as `train` does.

        The weights in use do not change: call `load_weights` to use the new ones.

        Raises:
            ModelProcessError: the child ended, or took too long.
        """
        report: TrainingReport = self._ask("train", learn, seed)
        return report

    def train_tree_gru(self, problem: TreeGruProblem) -> TreeGruWeights:
        """Train networks that walk loops, as `train_tree_gru` does.

        Raises:
            ModelProcessError: the child ended, or took too long.
        """
        weights: TreeGruWeights = self._ask("train_tree_gru", problem)
        return weights

    def kill(self) -> None:
        """Kill the child; a request that waits for it fails, and so does every later one."""
        if self._child is not None:
            self._child.kill()

    def close(self) -> None:
        """Stop the child, whatever it is doing; does nothing when it is not running."""
        if self._child is not None:
            self._child.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, method: str, *arguments: object) -> Any:
        """Have the worker call one of its methods; raise what the method raises."""
        with self._lock:
            child = self._started()
            if not self._ready:
                _returned(child.receive(self._ready_deadline_s))
                self._ready = True
            deadline_s = time.monotonic() + _REQUEST_LIMIT_S
            child.send((method, arguments), deadline_s)
            return _returned(child.receive(deadline_s))

    def _started(self) -> ChildProcess:
        if self._child is None:
            raise ModelProcessError("The cost-model process got a request before it was started.")
        return self._child


def _returned(answer: Any) -> Any:
    if isinstance(answer, Exception):
        raise answer
    return answer
