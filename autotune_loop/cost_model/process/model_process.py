"""The client of the process that TensorFlow lives in during a run."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from autotune_loop.candidate import TrainingSample
from autotune_loop.cost_model.process.line_process import LineProcess, ModelProcessError
from autotune_loop.cost_model.ranking import RankingScores
from autotune_loop.cost_model.training_options import Loss
from autotune_loop.cost_model.training_report import TrainingReport, report_from_fields
from targets.errors import SdkError, UsageError, WeightsError
from weights.weights_file import read_weights


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


# TensorFlow's threads for one operation.
_THREADS = 1
# Counted from `start`.
_START_LIMIT_S = 180.0
_REQUEST_LIMIT_S = 600.0
_IMPORT_ROOT = Path(__file__).resolve().parents[3]
_ERROR_KINDS: dict[str, type[SdkError]] = {"weights": WeightsError, "usage": UsageError}


class ModelProcess:
    """Predicts and trains in one child process, so that TensorFlow is imported once, while the caller works on.

    Every method may be called from any thread; requests are served one after the other. After a request that fails
    because of its files the process is still usable; after a ModelProcessError it is gone, with its samples.

    Args:
        python: the interpreter with TensorFlow.
        num_cores: cores of the device whose runtimes are predicted; of a GPU, its streaming multiprocessors.
        weights_path: the weights to start from; they decide the network, Adams2019's or Anderson2021's.
        log_path: receives what the child and its libraries print.
        environment: the child's environment; TensorFlow's own settings are added.
    """

    def __init__(
        self,
        python: Path,
        num_cores: int,
        weights_path: Path,
        log_path: Path,
        environment: Mapping[str, str],
    ) -> None:
        self._command = [str(python), "-P", "-m", "autotune_loop.cost_model.process.model_worker"]
        self._command += ["--weights", str(weights_path), "--num-cores", str(num_cores), "--threads", str(_THREADS)]
        self._environment = tensorflow_environment(environment, _THREADS)
        python_path = [str(_IMPORT_ROOT), environment.get("PYTHONPATH", "")]
        self._environment["PYTHONPATH"] = os.pathsep.join(filter(None, python_path))
        self._log_path = log_path
        self._lock = threading.Lock()
        self._child: LineProcess | None = None
        self._ready = False
        self._ready_deadline_s = 0.0
        self._last_id = 0

    def start(self) -> None:
        """Start the child and return at once; the first request waits until it is ready, and raises WeightsError where
        the starting weights are unusable.

        Raises:
            ModelProcessError: it was started before, or the interpreter or the log cannot be opened.
        """
        with self._lock:
            if self._child is not None:
                raise ModelProcessError("The cost-model process was started twice.")
            self._child = LineProcess(self._command, self._environment, self._log_path)
            self._ready_deadline_s = time.monotonic() + _START_LIMIT_S

    def load_weights(self, path: Path) -> None:
        """Use other weights for predictions and as the start of the next training; on an error the old ones stay.

        Raises:
            WeightsError: the file is missing, damaged or for another network.
            ModelProcessError: the child ended, or took too long.
        """
        self._request({"do": "load_weights", "path": os.path.abspath(path)})

    def predict(self, featurization_paths: Sequence[Path]) -> list[float | None]:
        """Predicted runtimes in milliseconds, in the given order; None for a file that is missing, damaged or for
        another network.

        Raises:
            ModelProcessError: the child ended, or took too long.
        """
        paths = [os.path.abspath(path) for path in featurization_paths]
        answer = self._request({"do": "predict", "paths": paths})
        predictions_ms: list[float | None] = answer["predictions_ms"]
        return predictions_ms

    def add_samples(self, samples: Sequence[TrainingSample]) -> list[tuple[TrainingSample, str]]:
        """Add samples for later trainings; of equal schedules the fastest counts.

        Returns:
            The samples that were left out, each with the reason: unreadable features, another network, or a runtime
            that is not a time.

        Raises:
            ModelProcessError: the child ended, or took too long.
        """
        entries = [
            {
                "path": os.path.abspath(sample.featurization_path),
                "runtime_ms": sample.measured.median_ms,
                "pipeline_id": sample.pipeline_id,
            }
            for sample in samples
        ]
        answer = self._request({"do": "add_samples", "samples": entries})
        return [(samples[entry["index"]], entry["reason"]) for entry in answer["rejected"]]

    def score(self, weights_path: Path) -> RankingScores:
        """How well the weights in a file order the added samples; the weights in use do not change.

        Raises:
            WeightsError: the file is missing, damaged or for another network.
            ModelProcessError: the child ended, or took too long.
        """
        return RankingScores(**self._request({"do": "score", "path": os.path.abspath(weights_path)})["scores"])

    def train(
        self,
        output_path: Path,
        *,
        epochs: int = 500,
        learning_rate: float = 5e-4,
        loss: Loss = Loss.RELATIVE_THROUGHPUT,
        held_out_share: float = 0.2,
        seed: int = 0,
    ) -> TrainingReport:
        """Train from the weights in use on all samples; write the new weights if they are accepted.

        The weights in use do not change: call `load_weights` with the output to use the new ones. See
        `TrainingOptions` for the arguments, and `train` for what is accepted.

        Raises:
            UsageError: an option is out of its range.
            WeightsError: the output cannot be written.
            ModelProcessError: the child ended, or took too long.
        """
        answer = self._request(
            {
                "do": "train",
                "output_path": os.path.abspath(output_path),
                "epochs": epochs,
                "learning_rate": learning_rate,
                "loss": str(loss),
                "held_out_share": held_out_share,
                "seed": seed,
            }
        )
        fields = answer["report"]
        accepted = report_from_fields(fields, None).accepted
        return report_from_fields(fields, read_weights(output_path) if accepted else None)

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

    def _request(self, request: Mapping[str, Any]) -> dict[str, Any]:
        with self._lock:
            child = self._started_child()
            self._last_id += 1
            deadline_s = time.monotonic() + _REQUEST_LIMIT_S
            child.send({"id": self._last_id} | dict(request), deadline_s)
            answer = child.receive(deadline_s)
            while answer.get("id") != self._last_id:  # the answer to a request that Ctrl-C interrupted
                answer = child.receive(deadline_s)
        _raise_failure(answer)
        return answer

    def _started_child(self) -> LineProcess:
        """The child, once it has said that it is ready."""
        if self._child is None:
            raise ModelProcessError("The cost-model process got a request before it was started.")
        if not self._ready:
            answer = self._child.receive(self._ready_deadline_s)
            if not answer["ready"]:
                self._child.close()
            _raise_failure(answer)
            self._ready = True
        return self._child


def _raise_failure(answer: Mapping[str, Any]) -> None:
    if not answer.get("ok", True):
        kind = _ERROR_KINDS.get(answer["kind"], ModelProcessError)
        raise kind(answer["message"], next_step=answer["next_step"])
