"""From tasks of bytes to the generators that compute them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from halide_autotune.autotune_loop.network import generators
from halide_autotune.autotune_loop.network.int8.int8_weights import PackedLayout
from halide_autotune.autotune_loop.network.operators import LOOKED_UP, OF_TWO, REDUCTIONS, OperatorKind, as_rows
from halide_autotune.autotune_loop.network.tasks import NetworkTask

_FOLDER = Path(generators.__file__).parent
_OF_PICTURES = {
    OperatorKind.CONVOLUTION: "int8_convolution",
    OperatorKind.DEPTHWISE_CONVOLUTION: "int8_depthwise_convolution",
    OperatorKind.POOL: "int8_pool",
    OperatorKind.GLOBAL_POOL: "int8_global_pool",
}
_DENSE = "int8_dense"
# They take what has any shape for a picture.
_OF_ALL = {
    OperatorKind.ADD: "int8_add",
    # With a negative factor.
    OperatorKind.SUBTRACT: "int8_add",
    OperatorKind.MULTIPLY: "int8_multiply",
    OperatorKind.ACTIVATION: "int8_rescale",
    OperatorKind.RESCALE: "int8_rescale",
    OperatorKind.SOFTMAX: "int8_softmax",
    OperatorKind.QUANTIZE: "quantize",
    OperatorKind.DEQUANTIZE: "dequantize",
}


def int8_generator(task: NetworkTask) -> str | None:
    """The name that the generator of a task of bytes is registered by; None if it has none: it only moves numbers."""
    dimensions = len(task.input_shapes[0])
    if task.kind is OperatorKind.DENSE:
        return _DENSE if dimensions == 1 else None
    if task.kind is OperatorKind.ACTIVATION and task.activation in LOOKED_UP:
        return "int8_lookup"
    return _OF_ALL.get(task.kind) or (_OF_PICTURES.get(task.kind) if dimensions == 3 else None)


def int8_file(name: str) -> Path:
    """Where a generator is registered."""
    return _FOLDER / ("int8_operators.py" if name in (*_OF_PICTURES.values(), _DENSE) else "int8_elementwise.py")


def int8_parameters(task: NetworkTask, layout: PackedLayout) -> Mapping[str, str]:
    """The generator's parameters for a task."""
    rows, columns, channels = as_rows(task.kind, task.input_shapes, task.input_shapes[0])
    known: dict[str, object] = {"channels_in": channels, **dict(task.settings)}
    if task.kind is OperatorKind.SOFTMAX:
        known["pixels"] = rows * columns
    elif task.kind is not OperatorKind.DENSE:
        known.update(rows=rows, columns=columns)
    if task.kind in REDUCTIONS and task.kind is not OperatorKind.DEPTHWISE_CONVOLUTION:
        known.update(channels_out=task.output_shape[-1], depth=layout.depth, block=layout.block)
    # It comes with each call, as a sign.
    known.pop("reverses", None)
    if task.kind in OF_TWO:
        # A constant has one number for each channel.
        known["spreads"] = task.input_shapes[1:] != (task.input_shapes[0],)
    known.update({name: bool(known[name]) for name in ("is_max", "rounds_once") if name in known})
    return {name: str(value).lower() for name, value in known.items()}
