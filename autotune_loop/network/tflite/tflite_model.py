"""A `.tflite` model that can be built and checked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halide_autotune.autotune_loop.network.int8.int8_weights import PackedLayout
from halide_autotune.autotune_loop.network.layer_check import (
    WHOLE_TOLERANCE,
    CheckedLayer,
    CheckedNetwork,
    compare,
)
from halide_autotune.autotune_loop.network.operators import Activation, ElementType, Network, OperatorKind
from halide_autotune.autotune_loop.network.tflite.read_tflite import is_in_file, tensor_place
from halide_autotune.autotune_loop.network.tflite.reference_process import Kernels, reference_tensors
from halide_autotune.autotune_loop.network.tflite.tflite_weights import tflite_weights

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

_MOVED = (OperatorKind.CONCATENATE, OperatorKind.PAD, OperatorKind.RESHAPE)
# Of the range of bytes: where they follow from floats whose sums have another order, some are rounded to a neighbour.
_ROUNDED_TOLERANCE = 0.02


@dataclass(frozen=True)
class TfliteModel:
    """As `LoadedModel`: each layer is compared with what TensorFlow Lite's reference kernels have there.

    They compute the file as a whole, so what follows a wrong layer cannot be judged. Bytes are compared bit for bit.
    There is no elu among them: of a file with it other kernels of TensorFlow Lite are right, whose bytes may be
    neighbours.

    Attributes:
        network: what `read_tflite` has read of the file.
    """

    path: Path
    network: Network
    reference: str = "TensorFlow Lite's reference kernels"

    def weights(self, layout: PackedLayout) -> list[tuple[Array, ...]]:
        """As `tflite_weights`."""
        return tflite_weights(self.path, self.network, layout)

    def random_inputs(self) -> list[Array]:
        """Floats from −1 to 1, and bytes of all values."""
        import numpy

        source = numpy.random.default_rng(1)
        found: list[Array] = []
        for each in self.network.inputs:
            if each.element is ElementType.INT8:
                found.append(source.integers(-128, 128, (1, *each.shape), numpy.int8))
            else:
                found.append(source.uniform(-1.0, 1.0, (1, *each.shape)).astype(numpy.float32))
        return found

    def check(self, inputs: Sequence[Array], made: Mapping[str, Array], outputs: Sequence[Array]) -> CheckedNetwork:
        """Each with the reference's tensor; an activation that the file has fused, with what it is done to."""
        right, tolerances = self._computed(inputs), _tolerances(self.network)
        layers: list[CheckedLayer | None] = []
        # Tensors with other numbers than the reference's, and the wrong layer that they come of.
        causes: dict[str, str] = {}
        for each in self.network.operators:
            name = each.output.name
            cause = next((causes[tensor.name] for tensor in each.inputs if tensor.name in causes), None)
            if not is_in_file(name):
                layers.append(None)
            elif each.kind is not OperatorKind.RESHAPE:
                found = compare("+".join(each.places), made[name], right[tensor_place(name)], tolerances[name])
                layers.append(replace(found, follows_from=None if found.is_right else cause))
                cause = None if found.is_right else cause or found.name
            if cause is not None:
                causes[name] = cause
        ends = []
        for index, (tensor, values) in enumerate(zip(self.network.outputs, outputs, strict=True)):
            end = compare(f"output {index}", values, right[tensor_place(tensor.name)], tolerances[tensor.name])
            ends.append(replace(end, follows_from=None if end.is_right else causes.get(tensor.name)))
        return CheckedNetwork(tuple(layers), tuple(ends))

    def _computed(self, inputs: Sequence[Array]) -> dict[int, Array]:
        """What is right for inputs, by places in the file."""
        tensors = [*self.network.outputs, *(operator.output for operator in self.network.operators)]
        wanted = {tensor_place(each.name): math.prod(each.shape) for each in tensors if is_in_file(each.name)}
        kernels = Kernels.OPTIMISED if _has_elu(self.network) else Kernels.REFERENCE
        return reference_tensors(self.path, kernels, inputs, wanted)


def _has_elu(network: Network) -> bool:
    return any(operator.activation is Activation.ELU for operator in network.operators)


def _tolerances(network: Network) -> dict[str, float]:
    """Of each tensor: floats are summed in another order, and what follows from them is off, too."""
    is_exact = not _has_elu(network)
    found = {tensor.name: 0.0 for tensor in network.inputs}
    for operator in network.operators:
        of_inputs = max(found[tensor.name] for tensor in operator.inputs)
        elements = (operator.inputs[0].element, operator.output.element)
        if ElementType.INT8 not in elements:
            own = 0.0 if operator.kind in _MOVED else WHOLE_TOLERANCE
        else:
            own = 0.0 if is_exact and not of_inputs else _ROUNDED_TOLERANCE
        found[operator.output.name] = max(of_inputs, own)
    return found
