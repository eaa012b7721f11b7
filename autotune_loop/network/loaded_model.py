"""A model that is read with all that it computes with: what differs between the formats of models, behind one seam."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from halide_autotune.autotune_loop.network.int8.int8_weights import PackedLayout
from halide_autotune.autotune_loop.network.layer_check import CheckedNetwork
from halide_autotune.autotune_loop.network.operators import Network

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]


class LoadedModel(Protocol):
    """A model of any format."""

    @property
    def network(self) -> Network:
        """Its operators."""

    @property
    def reference(self) -> str:
        """Who says what is right, for people."""

    def weights(self, layout: PackedLayout) -> list[tuple[Array, ...]]:
        """What each operator's generator takes beside what operators pass on, in its order; numbers are arrays without
        a dimension.

        Args:
            layout: of the weights of bytes.
        """

    def random_inputs(self) -> list[Array]:
        """One for each of its inputs, the same ones every time, with a batch of one."""

    def check(self, inputs: Sequence[Array], made: Mapping[str, Array], outputs: Sequence[Array]) -> CheckedNetwork:
        """Compare what each operator has computed, and the network's outputs with those of the model as a whole.

        Args:
            made: by the tensors' names.
        """
