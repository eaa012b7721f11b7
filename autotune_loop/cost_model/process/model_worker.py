"""The process that TensorFlow lives in: `python -m autotune_loop.cost_model.process.model_worker --help`.

It reads one JSON object per line from standard input and answers each with one on standard output; what libraries
print goes to standard error. The first line it writes says that it is ready, or why not. It ends when its standard
input closes, so it never outlives the program that started it.

    {"id": 1, "do": "predict", "paths": ["a.featurization"]}
    {"id": 1, "ok": true, "predictions_ms": [0.25]}
    {"id": 2, "do": "load_weights", "path": "gone.weights"}
    {"id": 2, "ok": false, "kind": "weights", "message": "...", "next_step": "..."}
"""

from __future__ import annotations

import argparse
import json
import math
import os
import queue
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import numpy as np

from autotune_loop.cost_model.cost_model import CostModel
from autotune_loop.cost_model.dataset import group_samples
from autotune_loop.cost_model.fitting import fit
from autotune_loop.cost_model.network import PIPELINE_INPUTS, schedule_inputs
from autotune_loop.cost_model.pipeline_batch import PipelineBatch
from autotune_loop.cost_model.ranking import score_ranking
from autotune_loop.cost_model.terms import TERM_COUNT
from autotune_loop.cost_model.training import train
from autotune_loop.cost_model.training_options import Loss, TrainingOptions
from autotune_loop.cost_model.training_report import report_fields
from autotune_loop.store.featurization import Featurization, read_featurization
from autotune_loop.store.sample_file import Sample
from targets.errors import SdkError, UsageError, WeightsError
from weights.network import Network
from weights.weights_file import Weights, read_weights, write_weights

JsonObject = dict[str, Any]


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
    fit(weights, [batch], TrainingOptions(num_cores=num_cores, epochs=1))


class _Worker:
    """The state between requests: the weights in use, and the samples so far.

    The first weights decide the network; a process never changes it.
    """

    def __init__(self, num_cores: int, weights_path: Path) -> None:
        self._num_cores = num_cores
        self._model = CostModel(read_weights(weights_path), num_cores)
        self._samples: dict[tuple[int, str], Sample] = {}

    @property
    def _network(self) -> Network:
        return self._model.weights.network

    def warm_up(self) -> None:
        warm_up(self._model.weights, self._num_cores)

    def answer(self, request: JsonObject) -> JsonObject:
        actions = {
            "load_weights": self._load_weights,
            "predict": self._predict,
            "add_samples": self._add_samples,
            "score": self._score,
            "train": self._train,
        }
        return actions[request["do"]](request)

    def _load_weights(self, request: JsonObject) -> JsonObject:
        self._model = CostModel(self._readable_weights(Path(request["path"])), self._num_cores)
        return {}

    def _readable_weights(self, path: Path) -> Weights:
        weights = read_weights(path)
        if weights.network is not self._network:
            raise WeightsError(
                f"The weights in {path} are for {weights.network}, but this run searches with {self._network}.",
                next_step=f"Pass weights for {self._network}.",
            )
        return weights

    def _predict(self, request: JsonObject) -> JsonObject:
        readable: dict[int, Featurization] = {}
        for index, path in enumerate(request["paths"]):
            try:
                readable[index] = read_network_features(Path(path), self._network)
            except WeightsError as error:
                print(error, file=sys.stderr)
        predictions_ms: list[float | None] = [None] * len(request["paths"])
        for index, prediction in zip(readable, self._model.predict(list(readable.values())), strict=True):
            if math.isfinite(prediction):
                predictions_ms[index] = float(prediction)
        return {"predictions_ms": predictions_ms}

    def _add_samples(self, request: JsonObject) -> JsonObject:
        rejected = []
        for index, entry in enumerate(request["samples"]):
            try:
                featurization = read_network_features(Path(entry["path"]), self._network)
                self._keep_faster(Sample(featurization, entry["runtime_ms"], entry["pipeline_id"]))
            except WeightsError as error:
                rejected.append({"index": index, "reason": str(error)})
        return {"unique": len(self._samples), "rejected": rejected}

    def _keep_faster(self, sample: Sample) -> None:
        key = (sample.effective_pipeline_id, sample.featurization.schedule_sha256)
        known = self._samples.get(key)
        if known is None or sample.runtime_ms < known.runtime_ms:
            self._samples[key] = sample

    def _score(self, request: JsonObject) -> JsonObject:
        model = CostModel(self._readable_weights(Path(request["path"])), self._num_cores)
        return {"scores": asdict(score_ranking(model, group_samples(self._samples.values(), self._num_cores)))}

    def _train(self, request: JsonObject) -> JsonObject:
        options = TrainingOptions(
            num_cores=self._num_cores,
            epochs=request["epochs"],
            learning_rate=request["learning_rate"],
            loss=Loss(request["loss"]),
            held_out_share=request["held_out_share"],
            seed=request["seed"],
        )
        report = train(self._model.weights, list(self._samples.values()), options)
        if report.weights is not None:
            write_weights(report.weights, Path(request["output_path"]))
        return {"report": report_fields(report)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve requests until standard input closes; exit code 1 if it could not get ready."""
    parser = argparse.ArgumentParser(prog="model_worker", description="Serve cost-model requests on standard input.")
    parser.add_argument("--weights", type=Path, required=True, help="the weights to start from")
    parser.add_argument("--num-cores", type=int, required=True, help="cores of the device")
    parser.add_argument("--threads", type=int, default=1, help="threads TensorFlow may use")
    options = parser.parse_args(arguments)
    answers = _take_over_standard_output()
    requests = _start_reading(sys.stdin.buffer)
    try:
        worker = _Worker(options.num_cores, options.weights)
        limit_threads(options.threads)
        worker.warm_up()
    except Exception as error:  # the client must learn of it, whatever it is
        _write(answers, {"ready": False} | _failure(error))
        return 1
    _write(answers, {"ready": True})
    for request in requests:
        try:
            answer = {"ok": True} | worker.answer(request)
        except Exception as error:  # one bad request must not end the process
            answer = _failure(error)
        _write(answers, {"id": request["id"]} | answer)
    return 0


def _take_over_standard_output() -> IO[str]:
    """Keep standard output for answers; what libraries print to it goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _start_reading(stream: IO[bytes]) -> Iterator[JsonObject]:
    """Read requests in a thread, so that closing standard input ends the process even while it works."""
    pending: queue.SimpleQueue[JsonObject] = queue.SimpleQueue()

    def read() -> None:
        try:
            for line in stream:
                pending.put(json.loads(line))
        finally:
            os._exit(0)

    threading.Thread(target=read, daemon=True, name="requests").start()
    return iter(pending.get, None)


def _failure(error: Exception) -> JsonObject:
    if isinstance(error, SdkError):
        kinds = {WeightsError: "weights", UsageError: "usage"}
        kind = kinds.get(type(error), "other")
        return {"ok": False, "kind": kind, "message": error.message, "next_step": error.next_step}
    traceback.print_exception(error)
    if isinstance(error, ImportError):
        step = "Install it with: pip install tensorflow"
        return {
            "ok": False,
            "kind": "other",
            "message": f"TensorFlow cannot be loaded: {error}.",
            "next_step": step,
        }
    message = f"The cost model failed unexpectedly: {type(error).__name__}: {error}."
    return {"ok": False, "kind": "other", "message": message, "next_step": ""}


def _write(answers: IO[str], answer: JsonObject) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


if __name__ == "__main__":
    exit_code = main()
    sys.stderr.flush()
    os._exit(exit_code)  # an ordinary exit would wait for the thread that reads standard input, and abort
