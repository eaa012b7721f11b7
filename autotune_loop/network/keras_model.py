"""A Keras model that can be built and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from halide_autotune.autotune_loop.network.int8.int8_weights import PackedLayout
from halide_autotune.autotune_loop.network.layer_check import CheckedNetwork, check_network, random_inputs
from halide_autotune.autotune_loop.network.operators import Network
from halide_autotune.autotune_loop.network.weights import operator_weights

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]


@dataclass(frozen=True)
class KerasModel:
    """As `LoadedModel`: each layer is compared with what Keras makes of what the network gave it.

    Attributes:
        model: the `keras.Model`.
        network: what `read_keras` has read of it.
    """

    model: Any
    network: Network
    reference: str = "Keras"

    def weights(self, layout: PackedLayout) -> list[tuple[Array, ...]]:
        """Of floats, which no layout is for."""
        return operator_weights(self.model, self.network)

    def random_inputs(self) -> list[Array]:
        """Floats from −1 to 1."""
        return random_inputs(self.model)

    def check(self, inputs: Sequence[Array], made: Mapping[str, Array], outputs: Sequence[Array]) -> CheckedNetwork:
        """Each layer on what the network gave it."""
        return check_network(self.model, self.network, inputs, made, outputs)
