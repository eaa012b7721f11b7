"""From a network's tasks to the generators that compute them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.autotune_loop.network.int8.int8_generators import (
    int8_file,
    int8_generator,
    int8_parameters,
)
from halide_autotune.autotune_loop.network.int8.int8_weights import PackedLayout
from halide_autotune.autotune_loop.network.operators import REDUCTIONS, ElementType, OperatorKind, as_rows
from halide_autotune.autotune_loop.network.tasks import NetworkTask

# The generators of operators in 32-bit floats, by what they compute; the names are registered there.
OPERATORS_FILE = Path(__file__).parent / "generators" / "float_operators.py"
# What each of them computes is one generator's, by what it does to two numbers.
_OPERATIONS = {
    OperatorKind.ADD: "add",
    OperatorKind.MULTIPLY: "multiply",
    OperatorKind.SUBTRACT: "subtract",
    OperatorKind.SCALE: "scale",
    OperatorKind.ACTIVATION: "none",
}
_OF_PICTURES = (
    OperatorKind.CONVOLUTION,
    OperatorKind.DEPTHWISE_CONVOLUTION,
    OperatorKind.POOL,
    OperatorKind.GLOBAL_POOL,
)
# They take what has any shape for a picture.
_OF_ALL = (OperatorKind.SOFTMAX, *_OPERATIONS)
# They take vectors.
_OF_VECTORS = (OperatorKind.DENSE, OperatorKind.LSTM_STATE)
_TRUTHS = ("has_bias", "is_max", "is_hidden", "reverses")
_LAYOUT = PackedLayout()


@dataclass(frozen=True)
class OperatorGenerator:
    """A generator that computes some of a network's tasks.

    Attributes:
        name: its registered one.
        tasks: what is tuned, an argument set of the generator each.
        layout: of the weights of bytes.
    """

    name: str
    tasks: tuple[NetworkTask, ...]
    layout: PackedLayout = _LAYOUT

    @property
    def file(self) -> Path:
        """Where it is registered."""
        return int8_file(self.name) if self.tasks[0].element is ElementType.INT8 else OPERATORS_FILE

    @property
    def parameters(self) -> tuple[tuple[str, ...], ...]:
        """The generator's parameters for each task."""
        return tuple(
            tuple(f"{name}={value}" for name, value in _parameters(task, self.layout).items()) for task in self.tasks
        )

    @property
    def calls(self) -> tuple[float, ...]:
        """How often the network computes each."""
        return tuple(float(task.count) for task in self.tasks)


def operator_generators(
    tasks: Iterable[NetworkTask], layout: PackedLayout = _LAYOUT
) -> tuple[list[OperatorGenerator], list[NetworkTask]]:
    """The generators of a network's tasks, and the tasks that have none: they only move numbers.

    Args:
        layout: of the weights of bytes.
    """
    found: dict[str, list[NetworkTask]] = {}
    rest = []
    for task in tasks:
        name = _generator(task)
        if name is None:
            rest.append(task)
        else:
            found.setdefault(name, []).append(task)
    return [OperatorGenerator(name, tuple(several), layout) for name, several in found.items()], rest


def _generator(task: NetworkTask) -> str | None:
    if task.element is ElementType.INT8:
        return int8_generator(task)
    if task.kind in _OPERATIONS:
        return "elementwise"
    dimensions = len(task.input_shapes[0])
    of_its_shape = _OF_PICTURES if dimensions == 3 else _OF_VECTORS if dimensions == 1 else ()
    return task.kind.value if task.kind in (*_OF_ALL, *of_its_shape) else None


def _parameters(task: NetworkTask, layout: PackedLayout) -> Mapping[str, str]:
    if task.element is ElementType.INT8:
        return int8_parameters(task, layout)
    shape, settings = task.input_shapes[0], dict(task.settings)
    is_state = task.kind is OperatorKind.LSTM_STATE
    rows, columns, channels = as_rows(task.kind, task.input_shapes, shape)
    known: dict[str, object] = {"units": task.output_shape[-1]} if is_state else {"channels_in": channels}
    if task.kind is OperatorKind.SOFTMAX:
        known["pixels"] = rows * columns
    elif task.kind not in _OF_VECTORS:
        known.update(rows=rows, columns=columns)
    if task.kind in (OperatorKind.CONVOLUTION, OperatorKind.DENSE):
        known["channels_out"] = task.output_shape[-1]
    if task.kind in REDUCTIONS:
        known.update(adds=len(task.input_shapes) == 2, activation=task.activation.value)
    if task.kind in _OPERATIONS:
        others = task.input_shapes[1:]
        spreads = any(other != shape for other in others)
        known.update(operation=_OPERATIONS[task.kind], spreads=spreads, activation=task.activation.value)
    if task.slope:
        known["slope"] = task.slope
    known.update({name: bool(value) if name in _TRUTHS else value for name, value in settings.items()})
    return {name: str(value).lower() for name, value in known.items()}
