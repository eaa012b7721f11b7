"""From a Keras model to a network of operators: layers become operators, and what follows in place is fused into them.

Batch normalisation is folded into the weights of the convolution before it, an addition and an activation that nothing
else needs are done in it. Imports Keras when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from halide_autotune.autotune_loop.network.fusion import fused
from halide_autotune.autotune_loop.network.keras_constants import is_hard_sigmoid, scale_by_constant
from halide_autotune.autotune_loop.network.operators import (
    OF_TWO,
    REDUCTIONS,
    Activation,
    Network,
    Operator,
    OperatorKind,
    Shape,
    Tensor,
    UnsupportedLayer,
)

# An activation with its slope.
Sloped = tuple[Activation, float]
_ACTIVATIONS: Mapping[str, Activation] = {
    "linear": Activation.NONE,
    "relu": Activation.RELU,
    "relu6": Activation.RELU6,
    "sigmoid": Activation.SIGMOID,
    "tanh": Activation.TANH,
    "silu": Activation.SILU,
    "swish": Activation.SILU,
    "hard_silu": Activation.HARD_SWISH,
    "gelu": Activation.GELU,
}
# What a model can have instead of a layer that has no operator.
_INSTEAD = {
    **dict.fromkeys(
        ("LSTM", "RNN"),
        " over a sequence; make the model that of one step, with an LSTMCell whose states are inputs and outputs",
    ),
    "PReLU": "; LeakyReLU has one slope for all channels",
    "Embedding": "; let the model take the embedded vector as its input",
}
# What they are where nothing else is said.
_SLOPED: Mapping[str, Sloped] = {"leaky_relu": (Activation.LEAKY_RELU, 0.2), "elu": (Activation.ELU, 1.0)}
# Only for training: what comes in goes out.
_PASSES = ("Dropout", "SpatialDropout2D", "GaussianNoise", "GaussianDropout", "ActivityRegularization", "Identity")


class _Unsupported(Exception):
    """A layer cannot be an operator; the message is a phrase that says why."""


@dataclass
class _Reading:
    """A network as far as it is read: names of Keras's tensors → ours, and the operators in order."""

    tensors: dict[int, Tensor] = field(default_factory=dict)
    operators: list[Operator] = field(default_factory=list)
    unsupported: list[UnsupportedLayer] = field(default_factory=list)


def read_keras(model: Any) -> Network:
    """The network that a built Keras model computes for one picture or vector.

    Args:
        model: a functional or sequential `keras.Model`; of another kind it is unsupported as a whole.
    """
    reading = _Reading()
    name = str(model.name)
    model = keras_graph(model)
    if not hasattr(model, "operations"):
        whole = UnsupportedLayer(name, f"a {type(model).__name__} that is neither functional nor sequential")
        return Network(name, (), (), (), (whole,))
    _read(model, reading)
    reading.unsupported += _of_other_numbers(model)
    outputs = tuple(_tensor(reading, each) for each in model.outputs)
    inputs = tuple(_tensor(reading, each) for each in model.inputs)
    operators = fused(reading.operators, {each.name for each in outputs})
    return Network(name, inputs, outputs, tuple(operators), tuple(reading.unsupported))


def keras_tensors(model: Any) -> dict[str, Any]:
    """Keras's own tensors of a model that is read as a whole, by the names that ours have; some of ours have none."""
    reading, graph = _Reading(), keras_graph(model)
    _read(graph, reading)
    nodes = [node for nodes in graph._nodes_by_depth.values() for node in nodes]
    made = {id(each): each for node in nodes for each in node.outputs}
    return {tensor.name: made[key] for key, tensor in reading.tensors.items() if key in made}


def keras_graph(model: Any) -> Any:
    """The model with all its operations and their calls: a sequential one has a functional one inside."""
    return getattr(model, "_functional", None) or model


def _of_other_numbers(model: Any) -> list[UnsupportedLayer]:
    """The first layer that does not compute in floats of 32 bits: most often all do as the model's policy says."""
    layers = [each for each in model.operations if type(each).__name__ != "InputLayer"]
    found = [each for each in layers if _numbers(each) not in ("float32", "float64")]
    if not found:
        return []
    first, more = found[0], len(found) - 1
    others = f", as {more} more {'layer does' if more == 1 else 'layers do'}" if more else ""
    reason = (
        f"{type(first).__name__} that computes in {_numbers(first)} by its policy {first.dtype_policy.name}{others}; "
        "make the model with the policy float32 and load its weights"
    )
    return [UnsupportedLayer(str(first.name), reason)]


def _numbers(layer: Any) -> str:
    return str(getattr(layer, "quantization_mode", None) or getattr(layer, "compute_dtype", None) or "float32")


def _read(model: Any, reading: _Reading) -> None:
    # As Keras computes them: between two calls of a layer may be others.
    for depth in sorted(model._nodes_by_depth, reverse=True):
        for node in model._nodes_by_depth[depth]:
            layer = node.operation
            if type(layer).__name__ == "InputLayer":
                continue
            inputs = tuple(_tensor(reading, each) for each in node.arguments.keras_tensors)
            outputs = tuple(_tensor(reading, each) for each in node.outputs)
            try:
                reading.operators += _operators(layer, inputs, outputs)
            except _Unsupported as error:
                reading.unsupported.append(UnsupportedLayer(str(layer.name), str(error)))


def _tensor(reading: _Reading, of_keras: Any) -> Tensor:
    if id(of_keras) not in reading.tensors:
        shape = tuple(0 if extent is None else int(extent) for extent in of_keras.shape[1:])
        reading.tensors[id(of_keras)] = Tensor(f"t{len(reading.tensors)}", shape)
    return reading.tensors[id(of_keras)]


def _operators(layer: Any, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> list[Operator]:
    """A layer as operators: one, or one and what follows of it that no operator does in place."""
    kind, place, output = type(layer).__name__, str(layer.name), outputs[0]
    if kind not in (*_LAYERS, *_PASSES, "LSTMCell"):
        raise _Unsupported(f"there is no operator for {kind}{_INSTEAD.get(kind, '')}")
    if any(0 in tensor.shape for tensor in (*inputs, *outputs)):
        raise _Unsupported(f"{kind} with a shape that is only known when it runs")
    if kind == "LSTMCell":
        return _lstm_cell(layer, inputs, outputs)
    if kind in _PASSES:
        return [Operator(OperatorKind.RESHAPE, (place,), inputs, output)]
    found, settings = _LAYERS[kind](layer, inputs, output)
    if is_hard_sigmoid(layer):
        return _hard_sigmoid(Operator(found, (place,), inputs, output, settings))
    activation = _activation_of(layer, kind)
    if found in OF_TWO:
        # What has one pixel comes second.
        inputs = tuple(sorted(inputs, key=lambda tensor: tensor.shape != output.shape))
    operator = Operator(found, (place,), inputs, output, settings)
    if found is OperatorKind.ACTIVATION and activation in (None, (Activation.NONE, 0.0)):
        return [replace(operator, kind=OperatorKind.RESHAPE if activation else OperatorKind.SOFTMAX)]
    if activation is None:
        between = Tensor(f"{output.name}_before", output.shape)
        softmax = Operator(OperatorKind.SOFTMAX, (place,), (between,), output)
        return [replace(operator, output=between), softmax]
    return [replace(operator, activation=activation[0], slope=activation[1])]


def _hard_sigmoid(operator: Operator) -> list[Operator]:
    """relu6(x + 3) / 6 after an operator: 3 goes into its bias, and what is divided is a scale."""
    between = replace(operator.output, name=f"{operator.output.name}_before")
    before = replace(operator, output=between, activation=Activation.RELU6)
    if operator.kind in REDUCTIONS:
        before = replace(before, settings={**operator.settings, "has_bias": 1})
    else:
        before = replace(before, kind=OperatorKind.SCALE)
    return [before, Operator(OperatorKind.SCALE, operator.places, (between,), operator.output)]


def _lstm_cell(layer: Any, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> list[Operator]:
    """One product of all weights with the input beside the hidden state makes the gates; of these comes each state."""
    if len(inputs) != 3:
        raise _Unsupported(f"LSTMCell of {len(inputs)} tensors; give it its input and its two states")
    activations = [str(getattr(each, "__name__", each)) for each in (layer.activation, layer.recurrent_activation)]
    if activations != ["tanh", "sigmoid"]:
        raise _Unsupported(f"LSTMCell with the activations {' and '.join(activations)}; leave it tanh and sigmoid")
    (source, hidden, carry), places = inputs, (str(layer.name),)
    made, next_hidden, next_carry = outputs
    taken = Tensor(f"{made.name}_taken", (source.shape[0] + hidden.shape[0],))
    gates = Tensor(f"{made.name}_gates", (4 * hidden.shape[0],))
    return [
        Operator(OperatorKind.CONCATENATE, places, (source, hidden), taken),
        Operator(OperatorKind.DENSE, places, (taken,), gates, {"has_bias": int(layer.use_bias)}),
        Operator(OperatorKind.LSTM_STATE, places, (gates, carry), made, {"is_hidden": 1}),
        # What it gives is its first state, too.
        Operator(OperatorKind.RESHAPE, places, (made,), next_hidden),
        Operator(OperatorKind.LSTM_STATE, places, (gates, carry), next_carry, {"is_hidden": 0}),
    ]


def _activation_of(layer: Any, kind: str) -> Sloped | None:
    """None for softmax, which needs all numbers at once."""
    if kind in _OWN:
        return _OWN[kind](layer)
    function = getattr(layer, "activation", None)
    if function is None or kind == "Softmax":
        return Activation.NONE, 0.0
    name = str(getattr(function, "__name__", type(function).__name__))
    if name == "softmax":
        return None
    if name in _OWN:
        # A layer as another one's activation.
        return _OWN[name](function)
    if name in _SLOPED:
        return _SLOPED[name]
    if name not in _ACTIVATIONS:
        raise _Unsupported(f"{kind} with the activation {name}")
    return _ACTIVATIONS[name], 0.0


def _relu_of(layer: Any) -> Sloped:
    most = layer.max_value
    if layer.threshold or most not in (None, 6) or (layer.negative_slope and most is not None):
        raise _Unsupported(f"ReLU with a threshold, a max_value of {most} or both this and a negative_slope")
    if layer.negative_slope:
        return Activation.LEAKY_RELU, float(layer.negative_slope)
    return (Activation.RELU if most is None else Activation.RELU6), 0.0


_OWN: Mapping[str, Callable[[Any], Sloped]] = {
    "ReLU": _relu_of,
    "LeakyReLU": lambda layer: (Activation.LEAKY_RELU, float(layer.negative_slope)),
    "ELU": lambda layer: (Activation.ELU, float(layer.alpha)),
}


Read = tuple[OperatorKind, dict[str, int]]
_ONE_PIXEL = {
    f"{what}_{axis}": number
    for axis in ("rows", "columns")
    for what, number in (("kernel", 1), ("stride", 1), ("dilation", 1))
} | {f"pad_{axis}_{end}": 0 for axis in ("rows", "columns") for end in ("before", "after")}


def _window(layer: Any, size: tuple[int, int], source: Shape, output: Shape) -> dict[str, int]:
    """A window's settings; padding 'same' is that of TensorFlow, the odd one at the end."""
    strides, dilation = layer.strides, getattr(layer, "dilation_rate", (1, 1))
    dilation = (dilation, dilation) if isinstance(dilation, int) else dilation
    settings = {}
    for axis, name in enumerate(("rows", "columns")):
        reach = (size[axis] - 1) * dilation[axis] + 1
        total = max((output[axis] - 1) * strides[axis] + reach - source[axis], 0) if layer.padding == "same" else 0
        settings.update(
            {
                f"kernel_{name}": size[axis],
                f"stride_{name}": strides[axis],
                f"dilation_{name}": dilation[axis],
                f"pad_{name}_before": total // 2,
                f"pad_{name}_after": total - total // 2,
            }
        )
    return settings


def _channels_last(layer: Any) -> None:
    if getattr(layer, "data_format", "channels_last") != "channels_last":
        raise _Unsupported(f"{type(layer).__name__} with channels first")


def _convolution(layer: Any, inputs: tuple[Tensor, ...], output: Tensor) -> Read:
    _channels_last(layer)
    settings = _window(layer, tuple(layer.kernel_size), inputs[0].shape, output.shape)
    return OperatorKind.CONVOLUTION, {**settings, "groups": int(layer.groups), "has_bias": int(layer.use_bias)}


def _depthwise(layer: Any, inputs: tuple[Tensor, ...], output: Tensor) -> Read:
    _channels_last(layer)
    settings = _window(layer, tuple(layer.kernel_size), inputs[0].shape, output.shape)
    several = {"multiplier": int(layer.depth_multiplier), "has_bias": int(layer.use_bias)}
    return OperatorKind.DEPTHWISE_CONVOLUTION, {**settings, **several}


def _dense(layer: Any, inputs: tuple[Tensor, ...], output: Tensor) -> Read:
    """Of a picture it is a convolution with a window of one pixel."""
    has_bias = {"has_bias": int(layer.use_bias)}
    if len(inputs[0].shape) == 1:
        return OperatorKind.DENSE, has_bias
    if len(inputs[0].shape) != 3:
        raise _Unsupported(f"Dense of {len(inputs[0].shape)} dimensions")
    return OperatorKind.CONVOLUTION, {**_ONE_PIXEL, "groups": 1, **has_bias}


def _pool(layer: Any, inputs: tuple[Tensor, ...], output: Tensor) -> Read:
    _channels_last(layer)
    settings = _window(layer, tuple(layer.pool_size), inputs[0].shape, output.shape)
    return OperatorKind.POOL, {**settings, "is_max": int("Max" in type(layer).__name__)}


def _global_pool(layer: Any, inputs: tuple[Tensor, ...], output: Tensor) -> Read:
    _channels_last(layer)
    return OperatorKind.GLOBAL_POOL, {"is_max": int("Max" in type(layer).__name__)}


def _of_two(kind: OperatorKind) -> Callable[..., Read]:
    def read(layer: Any, inputs: tuple[Tensor, ...], output: Tensor) -> Read:
        if len(inputs) == 1 and scale_by_constant(layer) is not None:
            return OperatorKind.SCALE, {}
        if len(inputs) != 2:
            raise _Unsupported(f"{type(layer).__name__} of {len(inputs)} tensors")
        one_pixel = (*(1 for _ in output.shape[:-1]), output.shape[-1])
        shapes = [tensor.shape for tensor in inputs]
        if output.shape not in shapes or any(shape not in (output.shape, one_pixel) for shape in shapes):
            told = " and ".join("x".join(map(str, shape)) for shape in shapes)
            raise _Unsupported(f"{type(layer).__name__} of {told}")
        is_first_whole = inputs[0].shape == output.shape
        return kind, {"reverses": int(not is_first_whole)} if kind is OperatorKind.SUBTRACT else {}

    return read


def _normalization(layer: Any, inputs: tuple[Tensor, ...], output: Tensor) -> Read:
    axes = [layer.axis] if isinstance(layer.axis, int) else [*layer.axis]
    if axes not in ([-1], [len(inputs[0].shape)]):
        raise _Unsupported(f"{type(layer).__name__} along axis {layer.axis}")
    return OperatorKind.SCALE, {}


def _scale(layer: Any, inputs: tuple[Tensor, ...], output: Tensor) -> Read:
    if scale_by_constant(layer) is None:
        raise _Unsupported(f"{type(layer).__name__} that is not by a constant of each channel")
    return OperatorKind.SCALE, {}


def _padding(layer: Any, inputs: tuple[Tensor, ...], output: Tensor) -> Read:
    _channels_last(layer)
    (top, bottom), (left, right) = layer.padding
    names = ("pad_rows_before", "pad_rows_after", "pad_columns_before", "pad_columns_after")
    return OperatorKind.PAD, dict(zip(names, (top, bottom, left, right), strict=True))


def _concatenation(layer: Any, inputs: tuple[Tensor, ...], output: Tensor) -> Read:
    if layer.axis not in (-1, len(output.shape)):
        raise _Unsupported(f"Concatenate along axis {layer.axis}")
    return OperatorKind.CONCATENATE, {}


def _softmax(layer: Any, inputs: tuple[Tensor, ...], output: Tensor) -> Read:
    if layer.axis not in (-1, len(output.shape)):
        raise _Unsupported(f"Softmax along axis {layer.axis}")
    return OperatorKind.SOFTMAX, {}


def _flattened(layer: Any, inputs: tuple[Tensor, ...], output: Tensor) -> Read:
    _channels_last(layer)
    return OperatorKind.RESHAPE, {}


def _plain(kind: OperatorKind) -> Callable[..., Read]:
    return lambda layer, inputs, output: (kind, {})


_LAYERS: Mapping[str, Callable[..., Read]] = {
    "Conv2D": _convolution,
    "DepthwiseConv2D": _depthwise,
    "Dense": _dense,
    "MaxPooling2D": _pool,
    "AveragePooling2D": _pool,
    "GlobalMaxPooling2D": _global_pool,
    "GlobalAveragePooling2D": _global_pool,
    "BatchNormalization": _normalization,
    "Normalization": _normalization,
    "Rescaling": _plain(OperatorKind.SCALE),
    **dict.fromkeys(_OWN, _plain(OperatorKind.ACTIVATION)),
    "Activation": _plain(OperatorKind.ACTIVATION),
    "Softmax": _softmax,
    "Add": _of_two(OperatorKind.ADD),
    "Multiply": _of_two(OperatorKind.MULTIPLY),
    "Subtract": _of_two(OperatorKind.SUBTRACT),
    # By a constant.
    "Divide": _scale,
    "TrueDivide": _scale,
    "Concatenate": _concatenation,
    "ZeroPadding2D": _padding,
    "Flatten": _flattened,
    "Reshape": _plain(OperatorKind.RESHAPE),
}
