"""A model that is read with all that it computes with: what differs between the formats of models, behind one seam."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from halide_autotune.autotune_loop.network.int8.int8_weights import PackedLayout
from halide_autotune.autotune_loop.network.layer_check import CheckedLayer
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

    def check_layers(self, inputs: Sequence[Array], made: Mapping[str, Array]) -> list[CheckedLayer | None]:
        """Compare what each operator has computed.

        Args:
            made: by the tensors' names.

        Returns:
            One for each operator in order, those that give numbers another shape left out; None where the model has no
            such tensor: that is checked with the operator after it.
        """

    def check_outputs(self, inputs: Sequence[Array], made: Sequence[Array]) -> list[CheckedLayer]:
        """Compare the network's outputs with those of the model as a whole."""
