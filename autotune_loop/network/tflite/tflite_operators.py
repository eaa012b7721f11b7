"""From one operator of a `.tflite` file to operators of a network, by the schema's codes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from halide_autotune.autotune_loop.network.fusion import TAKES_ACTIVATION
from halide_autotune.autotune_loop.network.operators import Activation, ElementType, Operator, OperatorKind, Tensor
from halide_autotune.autotune_loop.network.tflite.tflite_file import TfliteTensor

# Of the schema's ActivationFunctionType and Padding.
_FUSED = {0: Activation.NONE, 1: Activation.RELU, 3: Activation.RELU6}
_SAME, _VALID = 0, 1
_AXES = ("rows", "columns")
# At the end of the name of what an activation is done to that the file has fused: it has no tensor of its own.
BEFORE = "_before"
Settings = dict[str, int]


class Unsupported(Exception):
    """Something has no operator; the message is a phrase that says why."""


@dataclass(frozen=True)
class TfliteCall:
    """An operator of the file with what it refers to.

    Attributes:
        inputs: all of them, constants too; None for what is left out.
        taken: those that are computed, without the batch.
    """

    code: str
    inputs: tuple[TfliteTensor | None, ...]
    taken: tuple[Tensor, ...]
    output: Tensor
    options: Mapping[str, float]

    def constant(self, place: int) -> Any:
        """The data of an input."""
        found = self.inputs[place] if place < len(self.inputs) else None
        if found is None or found.data is None:
            raise Unsupported(f"{self.code} without a constant as its input {place}")
        return found.data

    @property
    def activation(self) -> Activation:
        """What is fused into it."""
        number = int(self.options.get("FusedActivationFunction", 0))
        if number not in _FUSED:
            raise Unsupported(f"{self.code} with the fused activation {number}")
        return _FUSED[number]


def operators_of(call: TfliteCall) -> list[Operator]:
    """What computes it, in order.

    Raises:
        Unsupported: nothing here does.
        ValueError: shapes do not fit one another.
    """
    if call.code not in _CODES:
        raise Unsupported(f"there is no operator for {call.code}")
    if not call.taken:
        raise Unsupported(f"{call.code} of constants")
    types = {tensor.element for tensor in (*call.taken, call.output)}
    if len(types) > 1 and call.code not in ("QUANTIZE", "DEQUANTIZE"):
        raise Unsupported(f"{call.code} of {' and '.join(sorted(types))}")
    return [each for made in _CODES[call.code](call) for each in _with_activation_apart(made)]


def _with_activation_apart(operator: Operator) -> list[Operator]:
    """The operator, and after it the activation that TensorFlow Lite has fused into it and that it does not do."""
    does_it = operator.kind in (*TAKES_ACTIVATION, OperatorKind.ACTIVATION)
    if does_it or operator.activation is Activation.NONE or operator.output.element is ElementType.INT8:
        return [operator]
    between = replace(operator.output, name=f"{operator.output.name}{BEFORE}")
    after = replace(operator, kind=OperatorKind.ACTIVATION, inputs=(between,), settings={})
    return [replace(operator, output=between, activation=Activation.NONE, slope=0.0), after]


def _one(kind: OperatorKind, call: TfliteCall, settings: Settings, **changes: Any) -> list[Operator]:
    made = {"inputs": call.taken, "output": call.output, "settings": settings, "activation": call.activation}
    return [Operator(kind, (), **{**made, **changes})]


def _picture(call: TfliteCall) -> tuple[int, ...]:
    shape = call.taken[0].shape
    if len(call.taken) != 1 or len(shape) != 3 or len(call.output.shape) not in (1, 3):
        raise Unsupported(f"{call.code} of {len(shape)} dimensions")
    return shape


def _weights(call: TfliteCall, rank: int) -> tuple[int, ...]:
    """The shape of a reduction's weights, which are of the same element as what they are multiplied with."""
    weights = call.constant(1)
    found = call.inputs[1]
    assert found is not None
    if found.type.lower() != call.taken[0].element:
        raise Unsupported(f"{call.code} of {call.taken[0].element} with weights of the type {found.type.lower()}")
    if weights.ndim != rank:
        raise Unsupported(f"{call.code} with weights of {weights.ndim} dimensions")
    if call.output.element is ElementType.INT8 and ((found.zero_points != 0).any() or not len(found.scales)):
        raise Unsupported(f"{call.code} with weights whose zero point is not 0")
    return tuple(weights.shape)


def _bias(call: TfliteCall, channels: int) -> Settings:
    """Whether there is one; bytes always have one."""
    if len(call.inputs) < 3 or call.inputs[2] is None:
        return {} if call.output.element is ElementType.INT8 else {"has_bias": 0}
    bias = call.constant(2)
    if bias.shape != (channels,) or bias.dtype.kind != ("i" if call.output.element is ElementType.INT8 else "f"):
        raise Unsupported(f"{call.code} with a bias of the shape {bias.shape}")
    return {} if call.output.element is ElementType.INT8 else {"has_bias": int(bool(bias.any()))}


def _window(call: TfliteCall, size: tuple[int, int]) -> Settings:
    """A window's settings. Padding 'same' is TensorFlow's: as much as the stride leaves, the odd one at the end."""
    source, output = _picture(call), call.output.shape
    settings: Settings = {}
    if int(call.options["Padding"]) not in (_SAME, _VALID) or len(output) != 3:
        raise Unsupported(f"{call.code} with an unknown padding")
    for axis, name in enumerate(_AXES):
        letter = "HW"[axis]
        stride = int(call.options[f"Stride{letter}"])
        dilation = int(call.options.get(f"Dilation{letter}Factor", 1))
        if min(stride, dilation, size[axis]) < 1:
            raise ValueError(f"{call.code} has a window, a stride or a dilation below 1")
        reach = (size[axis] - 1) * dilation + 1
        is_same = int(call.options["Padding"]) == _SAME
        expected = -(-source[axis] // stride) if is_same else (source[axis] - reach) // stride + 1
        padded = _padded_before(call, letter)
        if padded is not None:
            # As many as the output has.
            expected = output[axis]
        if expected != output[axis]:
            raise ValueError(f"{call.code} has {output[axis]} {name} where {expected} follow from its window")
        total = max((expected - 1) * stride + reach - source[axis], 0) if is_same or padded is not None else 0
        before = total // 2 if padded is None else padded
        if not 0 <= before <= total:
            raise ValueError(f"{call.code} has {before} {name} before its picture")
        settings |= {f"kernel_{name}": size[axis], f"stride_{name}": stride, f"dilation_{name}": dilation}
        settings |= {f"pad_{name}_before": before, f"pad_{name}_after": total - before}
    return settings


def _padded_before(call: TfliteCall, letter: str) -> int | None:
    """What was read of padding that no option of the schema tells."""
    found = call.options.get(f"Pad{letter}")
    return None if found is None else int(found)


def _convolution(call: TfliteCall) -> list[Operator]:
    channels, rows, columns, each_in = _weights(call, 4)
    source = _picture(call)[2]
    if not each_in or source % each_in or channels % (source // each_in) or call.output.shape[-1] != channels:
        raise ValueError(f"{call.code} has weights for {each_in} of {source} channels")
    settings = {**_window(call, (rows, columns)), "groups": source // each_in, **_bias(call, channels)}
    return _one(OperatorKind.CONVOLUTION, call, settings)


def _depthwise(call: TfliteCall) -> list[Operator]:
    first, rows, columns, channels = _weights(call, 4)
    source = _picture(call)[2]
    if first != 1 or channels % source or call.output.shape[-1] != channels:
        raise ValueError(f"{call.code} has weights for {channels} of {source} channels")
    settings = {**_window(call, (rows, columns)), "multiplier": channels // source, **_bias(call, channels)}
    return _one(OperatorKind.DEPTHWISE_CONVOLUTION, call, settings)


def _dense(call: TfliteCall) -> list[Operator]:
    """Of a picture's pixels it is a convolution with a window of one pixel; what it takes whole is made a vector."""
    channels, channels_in = _weights(call, 2)
    (source,) = call.taken
    if int(call.options.get("WeightsFormat", 0)):
        raise Unsupported(f"{call.code} with weights in another order")
    if math.prod(source.shape) == channels_in and call.output.shape == (channels,):
        dense = _one(OperatorKind.DENSE, call, _bias(call, channels))
        if len(source.shape) == 1:
            return dense
        reshaped = _reshaped(source, (channels_in,))
        return [reshaped, replace(dense[0], inputs=(reshaped.output,))]
    if source.shape[-1] != channels_in or call.output.shape != (*source.shape[:-1], channels):
        raise ValueError(f"{call.code} has weights for {channels_in} numbers of {source.shape}")
    if len(source.shape) != 3:
        raise Unsupported(f"{call.code} of {len(source.shape)} dimensions")
    one = {f"{what}_{axis}": 1 for axis in _AXES for what in ("kernel", "stride", "dilation")}
    one |= {f"pad_{axis}_{end}": 0 for axis in _AXES for end in ("before", "after")}
    settings = {**one, "groups": 1, **_bias(call, channels)}
    if call.output.element is ElementType.INT8:
        settings["rounds_once"] = 1
    return _one(OperatorKind.CONVOLUTION, call, settings)


def _reshaped(source: Tensor, shape: tuple[int, ...]) -> Operator:
    """The same numbers for one that takes them in another shape."""
    made = replace(source, name=f"{source.name}_as_{'x'.join(map(str, shape))}", shape=shape)
    return Operator(OperatorKind.RESHAPE, (), (source,), made)


def _pool(call: TfliteCall) -> list[Operator]:
    size = (int(call.options["FilterHeight"]), int(call.options["FilterWidth"]))
    _as_before(call)
    return _one(OperatorKind.POOL, call, {**_window(call, size), "is_max": int(call.code == "MAX_POOL_2D")})


def _global_pool(call: TfliteCall) -> list[Operator]:
    shape = _picture(call)
    axes = {int(axis) % 4 for axis in call.constant(1).reshape(-1)}
    if axes != {1, 2}:
        raise Unsupported(f"{call.code} along the axes {', '.join(map(str, sorted(axes)))}")
    if math.prod(call.output.shape) != shape[2]:
        raise ValueError(f"{call.code} has the output {call.output.shape}")
    if call.code == "REDUCE_MAX":
        _as_before(call)
    return _one(OperatorKind.GLOBAL_POOL, call, {"is_max": int(call.code == "REDUCE_MAX")})


def _of_two(kind: OperatorKind) -> Callable[[TfliteCall], list[Operator]]:
    def read(call: TfliteCall) -> list[Operator]:
        output = call.output.shape
        one_pixel = (*(1 for _ in output[:-1]), output[-1])
        reshaped = [_reshaped(each, one_pixel) for each in call.taken if each.shape == output[-1:] != output]
        vectors = {each.inputs[0].name: each.output for each in reshaped}
        taken = [vectors.get(tensor.name, tensor) for tensor in call.taken]
        shapes = [tensor.shape for tensor in taken]
        if len(taken) == 1 and len(call.inputs) == 2 and shapes == [output]:
            return _of_constant(kind, call)
        if len(taken) != 2 or output not in shapes or any(each not in (output, one_pixel) for each in shapes):
            raise Unsupported(f"{call.code} of {' and '.join('x'.join(map(str, shape)) for shape in shapes)}")
        # What has one pixel comes second.
        inputs = tuple(sorted(taken, key=lambda tensor: tensor.shape != output))
        return [*reshaped, *_one(kind, call, _order(kind, shapes[0] != output), inputs=inputs)]

    return read


def _order(kind: OperatorKind, is_other_way: bool) -> Settings:
    return {"reverses": int(is_other_way)} if kind is OperatorKind.SUBTRACT else {}


def _of_constant(kind: OperatorKind, call: TfliteCall) -> list[Operator]:
    """With a number, or one of each channel: in floats it is a scale."""
    (constant,) = (each for each in call.inputs if each is not None and each.data is not None)
    extents, channels = constant.shape, call.output.shape[-1]
    if math.prod(extents) not in (1, channels) or (extents and extents[-1] != math.prod(extents)):
        raise Unsupported(f"{call.code} of a constant of the shape {'x'.join(map(str, extents))}")
    if constant.type.lower() != call.output.element:
        raise Unsupported(f"{call.code} of {call.output.element} with a constant of the type {constant.type.lower()}")
    if call.output.element is ElementType.INT8 and len(constant.scales) != 1:
        raise Unsupported(f"{call.code} of a constant with {len(constant.scales)} scales")
    if call.output.element is not ElementType.INT8:
        return _one(OperatorKind.SCALE, call, {})
    return _one(kind, call, _order(kind, call.inputs[0] is constant))


def _as_before(call: TfliteCall) -> None:
    """Bytes that are passed on mean what they did."""
    if call.taken[0].quantization != call.output.quantization:
        raise Unsupported(f"{call.code} that changes the scale")


def _activation(activation: Activation, slope: float = 0.0) -> Callable[[TfliteCall], list[Operator]]:
    def read(call: TfliteCall) -> list[Operator]:
        _alike(call)
        if activation is Activation.ELU and call.output.element is ElementType.INT8:
            raise Unsupported(f"{call.code} of int8")
        return _one(OperatorKind.ACTIVATION, call, {}, activation=activation, slope=slope)

    return read


def _leaky_relu(call: TfliteCall) -> list[Operator]:
    slope = float(call.options.get("Alpha", 0.0))
    if not math.isfinite(slope):
        raise ValueError(f"{call.code} has the slope {slope}")
    return _activation(Activation.LEAKY_RELU, slope)(call)


def _gelu(call: TfliteCall) -> list[Operator]:
    return _activation(Activation.GELU_TANH if call.options.get("Approximate") else Activation.GELU)(call)


def _alike(call: TfliteCall) -> None:
    if len(call.taken) != 1 or call.taken[0].shape != call.output.shape:
        raise ValueError(f"{call.code} changes the shape")


def _softmax(call: TfliteCall) -> list[Operator]:
    _alike(call)
    if call.options.get("Beta", 1.0) != 1.0:
        raise Unsupported(f"{call.code} with beta {call.options['Beta']}")
    return _one(OperatorKind.SOFTMAX, call, {})


def _concatenation(call: TfliteCall) -> list[Operator]:
    rank = len(call.output.shape) + 1
    axis = int(call.options.get("Axis", -1))
    if axis not in (-1, rank - 1) or len(call.taken) != len(call.inputs):
        raise Unsupported(f"{call.code} along axis {axis}, or of constants")
    channels = sum(tensor.shape[-1] for tensor in call.taken)
    if any((*tensor.shape[:-1], channels) != call.output.shape for tensor in call.taken):
        raise ValueError(f"{call.code} has the output {call.output.shape}")
    for tensor in call.taken:
        _as_before(replace(call, taken=(tensor,)))
    return _one(OperatorKind.CONCATENATE, call, {})


def _padding(call: TfliteCall) -> list[Operator]:
    shape, pads = _picture(call), call.constant(1)
    _as_before(call)
    if pads.shape != (4, 2) or (pads < 0).any():
        raise ValueError(f"{call.code} has the paddings {pads.shape}")
    outside = call.constant(2).reshape(-1)[0] if len(call.inputs) > 2 else None
    quantization = call.output.quantization
    if pads[[0, 3]].any() or outside not in (None, 0 if quantization is None else quantization.zero_point):
        raise Unsupported(f"{call.code} of channels, or with what is not 0")
    if tuple(extent + int(pad.sum()) for extent, pad in zip(shape, pads[1:], strict=True)) != call.output.shape:
        raise ValueError(f"{call.code} has the output {call.output.shape}")
    names = ("pad_rows_before", "pad_rows_after", "pad_columns_before", "pad_columns_after")
    return _one(OperatorKind.PAD, call, dict(zip(names, map(int, pads[1:3].reshape(-1)), strict=True)))


def _reshape(call: TfliteCall) -> list[Operator]:
    if math.prod(call.taken[0].shape) != math.prod(call.output.shape):
        # Of a batch of any size, which is not 1 in between.
        raise Unsupported(f"{call.code} to a shape that is only known when it runs")
    _as_before(call)
    return _one(OperatorKind.RESHAPE, call, {}, inputs=call.taken[:1])


def _quantize(call: TfliteCall) -> list[Operator]:
    _alike(call)
    kinds = {
        (ElementType.FLOAT32, ElementType.INT8): OperatorKind.QUANTIZE,
        (ElementType.INT8, ElementType.FLOAT32): OperatorKind.DEQUANTIZE,
        (ElementType.INT8, ElementType.INT8): OperatorKind.RESCALE,
    }
    types = (call.taken[0].element, call.output.element)
    if types not in kinds:
        raise Unsupported(f"{call.code} of {types[0]} to {types[1]}")
    return _one(kinds[types], call, {})


_CODES: Mapping[str, Callable[[TfliteCall], list[Operator]]] = {
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _dense,
    "MAX_POOL_2D": _pool,
    "AVERAGE_POOL_2D": _pool,
    "MEAN": _global_pool,
    "REDUCE_MAX": _global_pool,
    "ADD": _of_two(OperatorKind.ADD),
    "MUL": _of_two(OperatorKind.MULTIPLY),
    "SUB": _of_two(OperatorKind.SUBTRACT),
    "RELU": _activation(Activation.RELU),
    "RELU6": _activation(Activation.RELU6),
    "LOGISTIC": _activation(Activation.SIGMOID),
    "TANH": _activation(Activation.TANH),
    "LEAKY_RELU": _leaky_relu,
    "ELU": _activation(Activation.ELU, 1.0),
    "HARD_SWISH": _activation(Activation.HARD_SWISH),
    "GELU": _gelu,
    "SOFTMAX": _softmax,
    "CONCATENATION": _concatenation,
    "PAD": _padding,
    "PADV2": _padding,
    "RESHAPE": _reshape,
    "SQUEEZE": _reshape,
    "EXPAND_DIMS": _reshape,
    "QUANTIZE": _quantize,
    "DEQUANTIZE": _quantize,
}
