"""Predicting runtimes with Halide's cost model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from halide_autotune.autotune_loop.cost_model.network import (
    input_signature,
    network_inputs,
    pack_weights,
    predicted_ms,
    prices_before_activation,
)
from halide_autotune.autotune_loop.cost_model.terms import TERM_COUNT, FloatArray, cost_terms
from halide_autotune.autotune_loop.store.featurization import Featurization
from halide_autotune.targets.errors import UsageError, WeightsError
from halide_autotune.weights.network import Network
from halide_autotune.weights.weights_file import Weights


class CostModel:
    """Halide's cost model with given weights, for a machine with a given number of cores.

    The weights decide whether it is Adams2019's or Anderson2021's; the cores of a GPU are its streaming
    multiprocessors. The predictions are the plug-in's own (`parallelism` = num_cores), within the rounding of float32.
    Not safe for use by several threads at once.

    Raises:
        UsageError: num_cores is not positive.
    """

    def __init__(self, weights: Weights, num_cores: int) -> None:
        if num_cores < 1:
            raise UsageError(f"The cost model needs at least 1 core, not {num_cores}.")
        self.weights = weights
        self.num_cores = num_cores
        self._parameters = pack_weights(weights)

    def predict(self, featurizations: Sequence[Featurization]) -> FloatArray:
        """Predicted runtimes in milliseconds, (len(featurizations),), of schedules of any pipelines.

        Raises:
            WeightsError: features of another network than the weights'.
        """
        require_network(featurizations, self.weights.network)
        groups: dict[bytes, list[int]] = {}
        for index, featurization in enumerate(featurizations):
            groups.setdefault(featurization.pipeline_features.tobytes(), []).append(index)
        predictions = np.empty(len(featurizations), dtype=np.float32)
        for indices in groups.values():
            schedule_features = np.stack([featurizations[index].schedule_features for index in indices])
            logs, pipeline_inputs = network_inputs(schedule_features, featurizations[indices[0]].pipeline_features)
            predictions[indices] = self.predict_inputs(
                logs, cost_terms(schedule_features, self.num_cores, self.weights.network), pipeline_inputs
            )
        return predictions

    def predict_inputs(self, logs: FloatArray, terms: FloatArray, pipeline_inputs: FloatArray) -> FloatArray:
        """As `predict`, from prepared inputs of one pipeline: (n, stages, 40 or 74), (n, stages, 32), (stages, 280)."""
        function = _prediction_function(self.weights.network)
        predictions: FloatArray = function(
            self._parameters,
            logs.reshape(-1, logs.shape[-1]),
            terms.reshape(-1, TERM_COUNT),
            pipeline_inputs,
        ).numpy()
        return predictions


def require_network(featurizations: Iterable[Featurization], network: Network) -> None:
    """Raise WeightsError for features of another network."""
    for featurization in featurizations:
        if featurization.network is not network:
            raise WeightsError(
                f"A schedule has the features of {featurization.network}, but the weights are for {network}.",
                next_step=f"Pass weights for {featurization.network}, or leave its schedules out.",
            )


@cache
def _prediction_function(network: Network) -> Callable[..., Any]:
    """Traced once for the process, for any number of schedules and stages."""
    import tensorflow as tf

    def predict(parameters: Any, logs: Any, terms: Any, pipeline_inputs: Any) -> Any:
        return predicted_ms(prices_before_activation(parameters, logs, pipeline_inputs, network), terms, network)

    function: Callable[..., Any] = tf.function(predict, input_signature=input_signature(network))
    return function
