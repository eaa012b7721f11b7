"""From a `.tflite` file to a network of operators: in floats as a Keras model's, in bytes as they are in the file."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from halide_autotune.autotune_loop.network.fusion import fused
from halide_autotune.autotune_loop.network.operators import (
    Activation,
    ElementType,
    Network,
    Operator,
    OperatorKind,
    Quantization,
    Tensor,
    UnsupportedLayer,
)
from halide_autotune.autotune_loop.network.tflite.dilation import with_dilation
from halide_autotune.autotune_loop.network.tflite.tflite_file import (
    TfliteFile,
    TfliteOperator,
    open_tflite,
    place_names,
)
from halide_autotune.autotune_loop.network.tflite.tflite_operators import BEFORE, TfliteCall, Unsupported, operators_of
from halide_autotune.targets.errors import NetworkError

_ELEMENTS = {"FLOAT32": ElementType.FLOAT32, "INT8": ElementType.INT8}
# Of shapes, which are known before it runs.
_OF_SHAPES = ("INT32", "INT64")


@dataclass
class _Reading:
    """A network as far as it is read."""

    file: TfliteFile
    operators: list[Operator] = field(default_factory=list)
    unsupported: list[UnsupportedLayer] = field(default_factory=list)


def read_tflite(path: Path) -> Network:
    """The network that a TensorFlow Lite model computes for one picture or vector.

    An operator's place is the name of its output in the file; with its number before it where nothing here computes it.

    Raises:
        NetworkError: there is no such file, or it is damaged.
    """
    file = open_tflite(path)
    try:
        return _network(with_dilation(file))
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise NetworkError(f"{path} is a damaged TensorFlow Lite model: {error}.") from error


def tensor_name(place: int) -> str:
    """The name in a network of a file's tensor."""
    return f"t{place}"


def tensor_place(name: str) -> int:
    """The place in the file of a network's tensor; 't5_as_6' is t5 in another shape."""
    return int(name[1:].partition("_")[0])


def is_in_file(name: str) -> bool:
    """Whether the file has a network's tensor; what comes before an activation that it has fused, it has not."""
    return not name.endswith(BEFORE)


def _network(file: TfliteFile) -> Network:
    reading = _Reading(file)
    made = {tensor_name(place) for place in file.inputs}
    for name, each in zip(place_names(file), file.operators, strict=True):
        if all(file.tensors[place].type in _OF_SHAPES for place in each.outputs):
            continue
        try:
            found = _operators(file, each, name)
        except Unsupported as error:
            reading.unsupported.append(UnsupportedLayer(f"{each.number} ({name})", str(error)))
            continue
        for operator in found:
            missing = [tensor.name for tensor in operator.inputs if tensor.name not in made]
            if missing and not reading.unsupported:
                raise ValueError(f"operator {each.number} takes what none before it makes")
            # What several take in another shape is made once.
            reading.operators += [] if operator.output.name in made else [operator]
            made.add(operator.output.name)
    inputs, outputs = (_ends(file, places, reading) for places in (file.inputs, file.outputs))
    if not reading.unsupported and any(tensor.name not in made for tensor in outputs):
        raise ValueError("none of its operators makes an output")
    operators = _with_silu(reading.operators, {each.name for each in outputs})
    operators = fused(operators, {each.name for each in outputs})
    return Network(file.name, inputs, outputs, tuple(operators), tuple(reading.unsupported))


def _ends(file: TfliteFile, places: tuple[int, ...], reading: _Reading) -> tuple[Tensor, ...]:
    found = []
    for place in places:
        try:
            found.append(_tensor(file, place))
        except Unsupported as error:
            reading.unsupported.append(UnsupportedLayer(file.tensors[place].name, str(error)))
    return tuple(found)


def _tensor(file: TfliteFile, place: int) -> Tensor:
    """A tensor that operators pass on, without the batch."""
    found = file.tensors[place]
    if found.type not in _ELEMENTS:
        raise Unsupported(f"numbers of the type {found.type.lower()}")
    if len(found.shape) > 1 and found.shape[0] != 1:
        raise Unsupported(f"a batch of {found.shape[0]}")
    shape = found.shape[1:] if len(found.shape) > 1 else found.shape
    if 0 in shape or not shape:
        raise Unsupported("a shape that is only known when it runs")
    element, quantization = _ELEMENTS[found.type], None
    if element is ElementType.INT8:
        if len(found.scales) != 1:
            raise Unsupported(f"bytes with {len(found.scales)} scales")
        quantization = Quantization(float(found.scales[0]), int(found.zero_points[0]))
    return Tensor(tensor_name(place), shape, element, quantization)


def _operators(file: TfliteFile, operator: TfliteOperator, name: str) -> list[Operator]:
    inputs = tuple(None if place < 0 else file.tensors[place] for place in operator.inputs)
    computed = [
        place
        for place in operator.inputs
        if place >= 0 and file.tensors[place].data is None and file.tensors[place].type not in _OF_SHAPES
    ]
    taken = tuple(_tensor(file, place) for place in computed)
    call = TfliteCall(operator.code, inputs, taken, _tensor(file, operator.outputs[0]), operator.options)
    return [replace(each, places=(name,)) for each in operators_of(call)]


def _with_silu(operators: list[Operator], kept: set[str]) -> list[Operator]:
    """x · sigmoid(x) of floats as one activation, where nothing else needs the sigmoid."""
    uses = Counter(tensor.name for operator in operators for tensor in operator.inputs)
    gates = {
        each.output.name: each
        for each in operators
        if each.activation is Activation.SIGMOID and uses[each.output.name] == 1 and each.output.name not in kept
    }
    found = []
    for each in operators:
        names = [tensor.name for tensor in each.inputs]
        gate = next((gates[name] for name in names if name in gates), None)
        is_plain_product = each.kind is OperatorKind.MULTIPLY and each.activation is Activation.NONE
        is_float = each.output.element is not ElementType.INT8
        if gate is None or gate.inputs[0].name not in names or not is_plain_product or not is_float:
            found.append(each)
            continue
        found.remove(gate)
        places = (*gate.places, *each.places)
        found.append(replace(gate, places=places, output=each.output, activation=Activation.SILU))
    return found
