"""The process that TensorFlow lives in: `python -m autotune_loop.cost_model.process.model_worker WEIGHTS CORES`.

It receives the name of a method of `_Worker` with its arguments on standard input and sends what the method returns or
raises to standard output, as `multiprocessing` sends objects; what libraries print goes to standard error. First it
sends None once it is ready, or why it is not. It ends when its standard input closes, so it never outlives the program
that started it.
"""

from __future__ import annotations

import math
import os
import queue
import sys
import threading
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from halide_autotune.autotune_loop.candidate import TrainingSample
from halide_autotune.autotune_loop.cost_model.cost_model import CostModel
from halide_autotune.autotune_loop.cost_model.dataset import group_samples
from halide_autotune.autotune_loop.cost_model.fitting import fit
from halide_autotune.autotune_loop.cost_model.network import PIPELINE_INPUTS, schedule_inputs
from halide_autotune.autotune_loop.cost_model.pipeline_batch import PipelineBatch
from halide_autotune.autotune_loop.cost_model.process.child_process import ModelProcessError
from halide_autotune.autotune_loop.cost_model.ranking import RankingScores, score_ranking
from halide_autotune.autotune_loop.cost_model.terms import TERM_COUNT
from halide_autotune.autotune_loop.cost_model.training import train
from halide_autotune.autotune_loop.cost_model.training_report import TrainingReport
from halide_autotune.autotune_loop.cost_model.tree_gru.training import TreeGruProblem, train_tree_gru
from halide_autotune.autotune_loop.cost_model.tree_gru.weights import TreeGruWeights
from halide_autotune.autotune_loop.specification.options import LearnOptions
from halide_autotune.autotune_loop.store.featurization import Featurization, read_featurization
from halide_autotune.autotune_loop.store.sample_file import Sample
from halide_autotune.targets.errors import SdkError, WeightsError
from halide_autotune.weights.network import Network
from halide_autotune.weights.weights_file import Weights, read_weights


def read_network_features(path: Path, network: Network) -> Featurization:
    """Read a `.featurization` file made for this network.

    Raises:
        WeightsError: the file is missing or damaged, or was made for another network.
    """
    try:
        return read_featurization(path, network)
    except WeightsError:
        other = next((other for other in Network if other is not network and _holds(path, other)), None)
        if other is None:
            raise
    raise WeightsError(
        f"The featurization {path} is for {other}, but the weights in use are for {network}.",
        next_step=f"Search with {network}, or pass weights for {other}.",
    )


def _holds(path: Path, network: Network) -> bool:
    try:
        read_featurization(path, network)
    except WeightsError:
        return False
    return True


def limit_threads(threads: int) -> None:
    """Limit TensorFlow's own thread pools; must come before its first operation."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)


def warm_up(weights: Weights, num_cores: int) -> None:
    """Trace prediction and training with Halide's loss (about 1 s), so that the first real call is fast."""
    stages, schedules = 2, 8
    batch = PipelineBatch(
        pipeline_id=1,
        schedule_sha256s=tuple(str(index) for index in range(schedules)),
        logs=np.ones((schedules, stages, schedule_inputs(weights.network)), dtype=np.float32),
        terms=np.ones((schedules, stages, TERM_COUNT), dtype=np.float32),
        pipeline_inputs=np.ones((stages, PIPELINE_INPUTS), dtype=np.float32),
        runtimes_ms=np.arange(1, schedules + 1, dtype=np.float32),
    )
    CostModel(weights, num_cores).predict_inputs(batch.logs, batch.terms, batch.pipeline_inputs)
    fit(weights, [batch], LearnOptions(epochs=1))


class _Worker:
    """The state between requests: the weights in use, and the samples so far.

    The first weights decide the network; a process never changes it.
    """

    def __init__(self, weights_path: Path, num_cores: int) -> None:
        self._num_cores = num_cores
        self._model = CostModel(read_weights(weights_path), num_cores)
        self._samples: dict[tuple[int, str], Sample] = {}

    @property
    def _network(self) -> Network:
        return self._model.weights.network

    def warm_up(self) -> None:
        warm_up(self._model.weights, self._num_cores)

    def load_weights(self, path: Path) -> None:
        self._model = self._readable_model(path)

    def _readable_model(self, path: Path) -> CostModel:
        weights = read_weights(path)
        if weights.network is not self._network:
            raise WeightsError(
                f"The weights in {path} are for {weights.network}, but this run searches with {self._network}.",
                next_step=f"Pass weights for {self._network}.",
            )
        return CostModel(weights, self._num_cores)

    def predict(self, paths: Sequence[Path]) -> list[float | None]:
        readable: dict[int, Featurization] = {}
        for index, path in enumerate(paths):
            try:
                readable[index] = read_network_features(path, self._network)
            except WeightsError as error:
                print(error, file=sys.stderr)
        predictions_ms: list[float | None] = [None] * len(paths)
        for index, prediction in zip(readable, self._model.predict(list(readable.values())), strict=True):
            if math.isfinite(prediction):
                predictions_ms[index] = float(prediction)
        return predictions_ms

    def add_samples(self, samples: Sequence[TrainingSample]) -> list[tuple[TrainingSample, str]]:
        rejected = []
        for sample in samples:
            try:
                featurization = read_network_features(sample.featurization_path, self._network)
                self._keep_faster(Sample(featurization, sample.measured.median_ms, sample.pipeline_id))
            except WeightsError as error:
                rejected.append((sample, str(error)))
        return rejected

    def _keep_faster(self, sample: Sample) -> None:
        key = (sample.pipeline_id, sample.featurization.schedule_sha256)
        known = self._samples.get(key)
        if known is None or sample.runtime_ms < known.runtime_ms:
            self._samples[key] = sample

    def score(self, path: Path) -> RankingScores:
        return score_ranking(self._readable_model(path), group_samples(self._samples.values(), self._num_cores))

    def train_tree_gru(self, problem: TreeGruProblem) -> TreeGruWeights:
        return train_tree_gru(problem)

    def train(self, learn: LearnOptions, seed: int) -> TrainingReport:
        return train(self._model.weights, list(self._samples.values()), learn, self._num_cores, seed)


def main(arguments: Sequence[str]) -> int:
    """Serve requests until standard input closes; exit code 1 if it could not get ready."""
    weights_path, num_cores = arguments
    requests = _start_reading(Connection(os.dup(0), writable=False))
    answers = Connection(os.dup(1), readable=False)
    os.dup2(2, 1)  # what libraries print
    try:
        worker = _Worker(Path(weights_path), int(num_cores))
        limit_threads(1)
        worker.warm_up()
    except Exception as error:  # the client must learn of it, whatever it is
        answers.send(_told(error))
        return 1
    answers.send(None)
    while True:
        method, values = requests.get()
        try:
            answer = getattr(worker, method)(*values)
        except Exception as error:  # one bad request must not end the process
            answer = _told(error)
        answers.send(answer)


def _start_reading(requests: Connection) -> queue.SimpleQueue[tuple[str, tuple[Any, ...]]]:
    """Receive requests in a thread, so that closing standard input ends the process even while it works."""
    pending: queue.SimpleQueue[tuple[str, tuple[Any, ...]]] = queue.SimpleQueue()

    def read() -> None:
        try:
            while True:
                pending.put(requests.recv())
        finally:
            os._exit(0)

    threading.Thread(target=read, daemon=True, name="requests").start()
    return pending


def _told(error: Exception) -> SdkError:
    if isinstance(error, SdkError):
        return error
    traceback.print_exception(error)
    if isinstance(error, ImportError):
        return ModelProcessError(
            f"TensorFlow cannot be loaded: {error}.", next_step="Install it with: pip install tensorflow"
        )
    return ModelProcessError(f"The cost model failed unexpectedly: {type(error).__name__}: {error}.")


if __name__ == "__main__":
    exit_code = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(exit_code)  # an ordinary exit would wait for the thread that reads standard input, and abort
