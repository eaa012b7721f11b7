"""Whether a network's layers compute what the Keras model does, each on its own, and the network as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from halide_autotune.autotune_loop.network.operators import Network, Operator, OperatorKind
from halide_autotune.autotune_loop.network.read_keras import keras_tensors

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

# Of the range of what a layer computes: sums of thousands of products are added in another order. Through a whole
# network the differences add up.
LAYER_TOLERANCE = 1e-4
WHOLE_TOLERANCE = 1e-3
# Where all numbers are nearly equal, their size counts.
_SHARE_OF_SIZE = 0.01


@dataclass(frozen=True)
class CheckedLayer:
    """A layer, or an output of the network, that was compared.

    Attributes:
        name: the model's layers that it computes.
        error: the largest difference, of the range of the right numbers; infinite where a number is none.
        tolerance: the largest error that is rounding.
        follows_from: a wrong layer that it is off because of, or may be: it took other numbers than the reference.
    """

    name: str
    error: float
    tolerance: float = LAYER_TOLERANCE
    follows_from: str | None = None

    @property
    def is_right(self) -> bool:
        """Whether it is within the tolerance."""
        return self.error <= self.tolerance

    @property
    def is_wrong(self) -> bool:
        """Whether it took the right numbers and made others."""
        return not self.is_right and self.follows_from is None

    def to_dict(self) -> dict[str, object]:
        """A JSON-ready form."""
        error = self.error if self.error < float("inf") else None
        return {
            "name": self.name,
            "error": error,
            "tolerance": self.tolerance,
            "is_right": self.is_right,
            "follows_from": self.follows_from,
        }


@dataclass(frozen=True)
class CheckedNetwork:
    """A network that was compared.

    Attributes:
        layers: one for each operator in order, those that give numbers another shape left out; None where the model has
            no such tensor: that is checked with the operator after it.
    """

    layers: tuple[CheckedLayer | None, ...]
    outputs: tuple[CheckedLayer, ...]


def random_inputs(model: Any) -> list[Array]:
    """An input of a model for each of its inputs, the same ones every time, with a batch of one."""
    import numpy

    source = numpy.random.default_rng(1)
    return [source.uniform(-1.0, 1.0, (1, *each.shape[1:])).astype(numpy.float32) for each in model.inputs]


def check_network(
    model: Any, network: Network, inputs: Sequence[Array], made: Mapping[str, Array], outputs: Sequence[Array]
) -> CheckedNetwork:
    """As `check_layers` and `check_outputs`; an output that is off after a wrong layer follows from that."""
    layers = check_layers(model, network, inputs, made)
    causes = _causes(network, layers)
    ends = [
        end if end.is_right else replace(end, follows_from=causes.get(tensor.name))
        for tensor, end in zip(network.outputs, check_outputs(model, network, inputs, outputs), strict=True)
    ]
    return CheckedNetwork(tuple(layers), tuple(ends))


def check_layers(
    model: Any, network: Network, inputs: Sequence[Array], made: Mapping[str, Array]
) -> list[CheckedLayer | None]:
    """Compare each operator that computes something with the model's layers on what the operator was given.

    So a layer is not blamed for one before it.

    Args:
        made: what the network has computed, by the tensors' names.

    Returns:
        One for each operator in order, those that give numbers another shape left out; None where the model has no such
        tensor: that is checked with the operator after it.
    """
    values = {tensor.name: each[0] for tensor, each in zip(network.inputs, inputs, strict=True)}
    known, by_output = keras_tensors(model), {each.output.name: each for each in network.operators}
    checked: list[CheckedLayer | None] = []
    for operator in network.operators:
        name, shape = operator.output.name, operator.output.shape
        if operator.kind is OperatorKind.RESHAPE:
            values[name] = values[operator.inputs[0].name].reshape(shape)
            continue
        values[name] = made[name].reshape(shape)
        if name not in known:
            checked.append(None)
            continue
        sources = list(dict.fromkeys(_known_inputs(operator, known, by_output)))
        (right,) = _computed([known[each] for each in sources], [known[name]], [values[each][None] for each in sources])
        checked.append(compare("+".join(operator.places), values[name], right))
    return checked


def check_outputs(model: Any, network: Network, inputs: Sequence[Array], made: Sequence[Array]) -> list[CheckedLayer]:
    """Compare the network's outputs with those of the model as a whole."""
    right = _computed(model.inputs, model.outputs, inputs)
    names = [f"output {index}" for index in range(len(network.outputs))]
    return [compare(*each, WHOLE_TOLERANCE) for each in zip(names, made, right, strict=True)]


def compare(name: str, found: Array, right: Array, tolerance: float = LAYER_TOLERANCE) -> CheckedLayer:
    """Compare what was computed with what is right; the shapes may differ."""
    import numpy

    found, right = found.reshape(-1).astype(float), right.reshape(-1).astype(float)
    finite = numpy.isfinite(right)
    if (finite != numpy.isfinite(found)).any():
        return CheckedLayer(name, float("inf"), tolerance)
    found, right = found[finite], right[finite]
    if not right.size:
        return CheckedLayer(name, 0.0, tolerance)
    scale = max(float(numpy.ptp(right)), _SHARE_OF_SIZE * float(numpy.abs(right).max()), float(numpy.finfo("f").tiny))
    return CheckedLayer(name, float(numpy.abs(found - right).max()) / scale, tolerance)


def _causes(network: Network, layers: Sequence[CheckedLayer | None]) -> dict[str, str]:
    """The tensors that a wrong layer is among what they are made of, and that layer."""
    causes: dict[str, str] = {}
    checks = iter(layers)
    for operator in network.operators:
        check = None if operator.kind is OperatorKind.RESHAPE else next(checks)
        cause = next((causes[tensor.name] for tensor in operator.inputs if tensor.name in causes), None)
        if cause is None and check is not None and check.is_wrong:
            cause = check.name
        if cause is not None:
            causes[operator.output.name] = cause
    return causes


def _known_inputs(operator: Operator, known: Mapping[str, Any], by_output: Mapping[str, Operator]) -> list[str]:
    """The tensors that the model has, too, from which an operator's output follows."""
    names = []
    for tensor in operator.inputs:
        is_known = tensor.name in known
        names += [tensor.name] if is_known else _known_inputs(by_output[tensor.name], known, by_output)
    return names


def _computed(sources: Sequence[Any], made: Sequence[Any], values: Sequence[Array]) -> list[Array]:
    """What Keras makes of values of tensors."""
    import keras
    import numpy

    found = keras.Model(list(sources), list(made))(list(values), training=False)
    return [numpy.asarray(each) for each in found]
