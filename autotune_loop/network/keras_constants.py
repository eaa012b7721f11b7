"""What Keras computes of a tensor and constants, such as `x + 3` in a model: each is a scale. Its hard sigmoid,
relu6(x + 3) / 6, is two with relu6 between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

# Factors and offsets of x + c, x − c, c − x and so on, by the operation's class.
_BEHIND: Mapping[str, Callable[[Array], tuple[Array, Array]]] = {
    "Add": lambda constant: (constant**0, constant),
    "Subtract": lambda constant: (constant**0, -constant),
    "Multiply": lambda constant: (constant, constant * 0),
    "TrueDivide": lambda constant: (1 / constant, constant * 0),
    "Divide": lambda constant: (1 / constant, constant * 0),
}
_BEFORE: Mapping[str, Callable[[Array], tuple[Array, Array]]] = {
    "Add": _BEHIND["Add"],
    "Subtract": lambda constant: (-(constant**0), constant),
    "Multiply": _BEHIND["Multiply"],
}
# Factor and offset of a hard sigmoid's two scales.
_BEFORE_RELU6, _BEHIND_RELU6 = (1.0, 3.0), (1.0 / 6.0, 0.0)


def is_hard_sigmoid(layer: Any) -> bool:
    """Whether a layer is, or ends with, Keras's hard sigmoid."""
    return getattr(getattr(layer, "activation", None), "__name__", "") == "hard_sigmoid"


def hard_sigmoid_scale(*, is_before: bool) -> tuple[Array, Array]:
    """Factor and offset of the scale before relu6, or of the one behind it."""
    import numpy

    factor, offset = _BEFORE_RELU6 if is_before else _BEHIND_RELU6
    return numpy.array([factor]), numpy.array([offset])


def scale_by_constant(operation: Any) -> tuple[Array, Array] | None:
    """Factors and offsets, one or one of each channel; None if it is another operation, or of other constants."""
    import numpy

    # Keras adds a call where a part of the model becomes a model.
    found = [_scale(type(operation).__name__, call) for call in operation._inbound_nodes]
    first = found[0]
    if first is None or any(each is None or not numpy.array_equal(first, each) for each in found):
        return None
    return first


def _scale(kind: str, call: Any) -> tuple[Array, Array] | None:
    import numpy

    if len(call.arguments.args) != 2 or len(call.arguments.keras_tensors) != 1:
        return None
    (taken,), made = call.arguments.keras_tensors, call.outputs[0]
    first, second = call.arguments.args
    known, constant = (_BEHIND, second) if first is taken else (_BEFORE, first)
    try:
        numbers = numpy.asarray(constant, numpy.float64)
    except (TypeError, ValueError):
        return None
    is_of_channels = numbers.size == 1 or numbers.shape[-1:] == (numbers.size,) == tuple(made.shape[-1:])
    if kind not in known or not is_of_channels or tuple(made.shape) != tuple(taken.shape):
        return None
    with numpy.errstate(divide="ignore"):
        return known[kind](numbers.reshape(-1))
