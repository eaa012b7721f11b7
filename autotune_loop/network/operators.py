"""A network as its operators: what each computes, from which tensors, in the order in which they run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

# Without the batch: rows, columns and channels of a picture; a vector has one number.
Shape = tuple[int, ...]


class OperatorKind(StrEnum):
    """What an operator computes."""

    CONVOLUTION = "convolution"
    DEPTHWISE_CONVOLUTION = "depthwise_convolution"
    DENSE = "dense"
    POOL = "pool"
    GLOBAL_POOL = "global_pool"
    ADD = "add"
    MULTIPLY = "multiply"
    # The second from the first, or with `reverses` the first from the second.
    SUBTRACT = "subtract"
    ACTIVATION = "activation"
    SCALE = "scale"
    SOFTMAX = "softmax"
    CONCATENATE = "concatenate"
    PAD = "pad"
    # The hidden state or the carry of a long short-term memory, from its gates and the carry before.
    LSTM_STATE = "lstm_state"
    # The same numbers in the same order.
    RESHAPE = "reshape"
    # From floats to bytes, from bytes to floats, and from bytes to bytes of another scale.
    QUANTIZE = "quantize"
    DEQUANTIZE = "dequantize"
    RESCALE = "rescale"


# They take two tensors, or one and a constant.
OF_TWO = (OperatorKind.ADD, OperatorKind.MULTIPLY, OperatorKind.SUBTRACT)
# They look at each number by itself.
_OF_NUMBERS = (
    *OF_TWO,
    OperatorKind.ACTIVATION,
    OperatorKind.QUANTIZE,
    OperatorKind.DEQUANTIZE,
    OperatorKind.RESCALE,
)
# They sum up products with weights.
REDUCTIONS = (OperatorKind.CONVOLUTION, OperatorKind.DEPTHWISE_CONVOLUTION, OperatorKind.DENSE)


class ElementType(StrEnum):
    """What a tensor's numbers are."""

    FLOAT32 = "float32"
    INT8 = "int8"

    @property
    def size_bytes(self) -> int:
        """Of one number."""
        return 4 if self is ElementType.FLOAT32 else 1


class Activation(StrEnum):
    """What is done to each number that an operator has computed."""

    NONE = "none"
    RELU = "relu"
    RELU6 = "relu6"
    SIGMOID = "sigmoid"
    TANH = "tanh"
    SILU = "silu"
    # They have a slope.
    LEAKY_RELU = "leaky_relu"
    ELU = "elu"
    HARD_SWISH = "hard_swish"
    GELU = "gelu"
    # With tanh in place of the error function.
    GELU_TANH = "gelu_tanh"


# Of bytes they are looked up.
LOOKED_UP = (
    Activation.SIGMOID,
    Activation.TANH,
    Activation.LEAKY_RELU,
    Activation.HARD_SWISH,
    Activation.GELU,
    Activation.GELU_TANH,
)


@dataclass(frozen=True)
class Quantization:
    """What the integers of a tensor stand for: scale · (integer − zero point)."""

    scale: float
    zero_point: int


@dataclass(frozen=True)
class Tensor:
    """What operators pass on.

    Attributes:
        name: unique in the network.
        quantization: None for floats.
    """

    name: str
    shape: Shape
    element: ElementType = ElementType.FLOAT32
    quantization: Quantization | None = None


@dataclass(frozen=True)
class Operator:
    """One operator.

    Attributes:
        places: the names of the model's layers that it stands for, the first one first.
        inputs: at least one; a convolution's second one is added to what it computes. An addition or multiplication of
            bytes that has one takes a constant of each channel.
        settings: what its generator is given beside the shapes, such as stride_rows.
        activation: what follows in it.
        slope: of what is below 0: leaky_relu multiplies with it, elu tends to its negative.
    """

    kind: OperatorKind
    places: tuple[str, ...]
    inputs: tuple[Tensor, ...]
    output: Tensor
    settings: Mapping[str, int] = field(default_factory=dict)
    activation: Activation = Activation.NONE
    slope: float = 0.0


@dataclass(frozen=True)
class UnsupportedLayer:
    """A layer that there is no operator for.

    Attributes:
        reason: why, in a phrase.
    """

    place: str
    reason: str


@dataclass(frozen=True)
class Network:
    """A network.

    Attributes:
        operators: in an order in which they can run.
        unsupported: what is missing among them; empty in a network that can be built.
    """

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    operators: tuple[Operator, ...]
    unsupported: tuple[UnsupportedLayer, ...] = ()


def as_picture(shape: Shape) -> tuple[int, int, int]:
    """Rows, columns and channels of what an operator takes that looks at each pixel alone; a vector is one pixel."""
    if len(shape) == 3:
        return (shape[0], shape[1], shape[2])
    return (1, math.prod(shape[:-1]), shape[-1])


def as_rows(kind: OperatorKind, inputs: Sequence[Shape], shape: Shape) -> tuple[int, int, int]:
    """Rows, columns and channels of what an operator takes or makes that looks at each pixel or number alone.

    Where each number is looked at by itself, those of a row count as channels of one column, which fill vectors however
    few channels there are.

    Args:
        inputs: the operator's.
        shape: of one of them, or of its output.
    """
    rows, columns, channels = as_picture(shape)
    is_spread = (kind in OF_TWO and len(inputs) == 1) or len(set(inputs)) > 1
    return (rows, columns, channels) if kind not in _OF_NUMBERS or is_spread else (rows, 1, columns * channels)
