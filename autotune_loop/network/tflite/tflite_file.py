"""A `.tflite` file as plain values: its first subgraph's tensors and operators, with every index within its bounds.

Nothing in the file is executed. It is read by the schema's accessors, one value after another, since their object form
would unpack the same table as often as a damaged file refers to it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halide_autotune.targets.errors import NetworkError
from halide_autotune.targets.values.texts import printable

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

_IDENTIFIER = b"TFL3"
# A tensor or an operator of the file takes more than so many bytes: there cannot be more of them.
_LEAST_ENTRY_BYTES = 4
_LARGEST_BYTES = 2**31
_LARGEST_RANK = 8
# What is read of an operator's options, by the name of their table.
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "Conv2DOptions": (
        "Padding", "StrideH", "StrideW", "DilationHFactor", "DilationWFactor", "FusedActivationFunction",
    ),
    "DepthwiseConv2DOptions": (
        "Padding", "StrideH", "StrideW", "DilationHFactor", "DilationWFactor", "FusedActivationFunction",
        "DepthMultiplier",
    ),
    "FullyConnectedOptions": ("FusedActivationFunction", "WeightsFormat", "KeepNumDims"),
    "Pool2DOptions": ("Padding", "StrideH", "StrideW", "FilterHeight", "FilterWidth", "FusedActivationFunction"),
    "AddOptions": ("FusedActivationFunction",),
    "MulOptions": ("FusedActivationFunction",),
    "SubOptions": ("FusedActivationFunction",),
    "LeakyReluOptions": ("Alpha",),
    "GeluOptions": ("Approximate",),
    "ConcatenationOptions": ("Axis", "FusedActivationFunction"),
    "SoftmaxOptions": ("Beta",),
}  # fmt: skip


@dataclass(frozen=True)
class TfliteTensor:
    """A tensor of a file.

    Attributes:
        shape: with the batch.
        type: such as FLOAT32.
        scales, zero_points: of bytes: one, or one of each place along `axis`; else empty.
        data: None where it is computed; else an array of the shape.
    """

    name: str
    shape: tuple[int, ...]
    type: str
    scales: Array
    zero_points: Array
    axis: int
    data: Array | None


@dataclass(frozen=True)
class TfliteOperator:
    """An operator of a file.

    Attributes:
        number: its place in the file.
        code: such as CONV_2D.
        inputs, outputs: places in the file's tensors; −1 for what is left out.
        options: by the schema's names.
    """

    number: int
    code: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Mapping[str, float]


@dataclass(frozen=True)
class TfliteFile:
    """What is read of a file.

    Attributes:
        inputs, outputs: places in its tensors.
    """

    name: str
    tensors: tuple[TfliteTensor, ...]
    operators: tuple[TfliteOperator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def place_names(file: TfliteFile) -> list[str]:
    """A name for each operator that no other one has: that of its output, with its number where that is not enough."""
    found: dict[str, None] = {}
    for each in file.operators:
        name = file.tensors[each.outputs[0]].name
        found[f"{name} ({each.number})" if name in found else name] = None
    return list(found)


def open_tflite(path: Path) -> TfliteFile:
    """Read a file.

    Raises:
        NetworkError: there is none, or it is damaged.
    """
    if not path.is_file():
        raise NetworkError(f"There is no model {path}.", next_step="Check the path.")
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            raise ValueError("it is larger than 2 GiB")
        content = path.read_bytes()
        if content[4:8] != _IDENTIFIER:
            raise ValueError("it does not begin as one")
        return _read(path.stem, content)
    except Exception as error:  # whatever the schema makes of a stranger's file
        reason = " ".join(str(error).split())[:300]
        raise NetworkError(
            f"{path} cannot be read as a TensorFlow Lite model: {reason}.",
            next_step="Convert the model again, and check that the file is complete.",
        ) from error


def _read(name: str, content: bytes) -> TfliteFile:
    from tensorflow.lite.python import schema_py_generated as schema

    model = schema.Model.GetRootAs(content, 0)
    if model.SubgraphsLength() != 1:
        raise ValueError(f"it has {model.SubgraphsLength()} subgraphs, where one is expected")
    graph = model.Subgraphs(0)
    counts = (graph.TensorsLength(), graph.OperatorsLength(), model.OperatorCodesLength())
    if max(counts) * _LEAST_ENTRY_BYTES > len(content):
        raise ValueError("it tells of more tensors or operators than it can hold")
    types = _names(schema.TensorType)
    tensors = tuple(_tensor(model, graph.Tensors(place), types) for place in range(counts[0]))
    codes = [_code(model.OperatorCodes(place), _names(schema.BuiltinOperator)) for place in range(counts[2])]
    operators = tuple(_operator(schema, graph, place, codes, len(tensors)) for place in range(counts[1]))
    inputs, outputs = (_places(each, len(tensors)) for each in (graph.InputsAsNumpy(), graph.OutputsAsNumpy()))
    if -1 in (*inputs, *outputs) or not inputs or not outputs:
        raise ValueError("it has no inputs or no outputs")
    return TfliteFile(name, tensors, operators, inputs, outputs)


def _names(enumeration: type) -> dict[int, str]:
    return {number: name for name, number in vars(enumeration).items() if isinstance(number, int)}


def _code(code: Any, names: Mapping[int, str]) -> str:
    # The older field holds 127 where the newer one is needed.
    number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
    custom = code.CustomCode()
    return printable(custom.decode(errors="replace")) if custom else names[number]


def _tensor(model: Any, tensor: Any, types: Mapping[int, str]) -> TfliteTensor:
    import numpy

    name = printable((tensor.Name() or b"").decode(errors="replace"))
    shape = _integers(tensor.ShapeAsNumpy())
    # Only the batch may be unknown; it is 1 here.
    if len(shape) > _LARGEST_RANK or any(extent < 0 for extent in shape) or math.prod(shape) > _LARGEST_BYTES:
        raise ValueError(f"tensor {name!r} has the shape {shape}")
    signature = _integers(tensor.ShapeSignatureAsNumpy())
    if any(extent < 0 for extent in signature[1:]):
        shape = tuple(0 if known < 0 else extent for known, extent in zip(signature, shape, strict=True))
    kind = types[tensor.Type()]
    scales, zeros, axis = numpy.empty(0, numpy.float32), numpy.empty(0, numpy.int64), 0
    quantization = tensor.Quantization()
    if kind == "INT8" and quantization is not None and quantization.ScaleLength():
        scales, zeros = quantization.ScaleAsNumpy(), quantization.ZeroPointAsNumpy()
        axis = quantization.QuantizedDimension()
        zeros = zeros if quantization.ZeroPointLength() else numpy.zeros(len(scales), numpy.int64)
        _check_quantization(name, shape, scales, zeros, axis)
    return TfliteTensor(name, shape, kind, scales, zeros, axis, _data(model, tensor, shape, kind))


def _check_quantization(name: str, shape: tuple[int, ...], scales: Array, zeros: Array, axis: int) -> None:
    import numpy

    is_fit = len(scales) == len(zeros) and bool(numpy.isfinite(scales).all() and (scales > 0).all())
    if len(scales) > 1:
        is_fit = is_fit and 0 <= axis < len(shape) and shape[axis] == len(scales)
    if not is_fit or (zeros < -128).any() or (zeros > 127).any():
        raise ValueError(f"tensor {name!r} has scales or zero points that cannot be")


def _data(model: Any, tensor: Any, shape: tuple[int, ...], kind: str) -> Array | None:
    """A tensor's constant, as a view of the file."""
    import numpy

    place = tensor.Buffer()
    if not 0 <= place < model.BuffersLength():
        raise ValueError(f"a tensor is in buffer {place} of {model.BuffersLength()}")
    buffer = model.Buffers(place)
    if not place or not buffer.DataLength() or kind not in _TYPES:
        return None
    found: Array = buffer.DataAsNumpy().view(numpy.dtype(_TYPES[kind]).newbyteorder("<"))
    return found.reshape(shape)


_TYPES = {"FLOAT32": "f4", "INT8": "i1", "INT32": "i4", "INT64": "i8"}


def _operator(schema: Any, graph: Any, number: int, codes: Sequence[str], count: int) -> TfliteOperator:
    operator = graph.Operators(number)
    place = operator.OpcodeIndex()
    if not 0 <= place < len(codes):
        raise ValueError(f"an operator has the code {place} of {len(codes)}")
    inputs, outputs = (_places(each, count) for each in (operator.InputsAsNumpy(), operator.OutputsAsNumpy()))
    if -1 in outputs or not outputs:
        raise ValueError("an operator has no output")
    options: dict[str, float] = {}
    kind = _names(schema.BuiltinOptions).get(operator.BuiltinOptionsType(), "")
    table = operator.BuiltinOptions()
    if table is not None and kind in _OPTIONS:
        found = getattr(schema, kind)()
        found.Init(table.Bytes, table.Pos)
        options = {name: getattr(found, name)() for name in _OPTIONS[kind]}
    return TfliteOperator(number, codes[place], inputs, outputs, options)


def _places(found: Any, count: int) -> tuple[int, ...]:
    places = _integers(found)
    if any(not -1 <= place < count for place in places):
        raise ValueError(f"it refers to a tensor that is not among its {count}")
    return places


def _integers(found: Any) -> tuple[int, ...]:
    """Of what the schema gives for a vector, which is 0 where there is none."""
    return () if isinstance(found, int) else tuple(int(each) for each in found)
