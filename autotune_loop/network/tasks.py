"""What is tuned of a network: each operator of each shape once, with how often the network needs it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from halide_autotune.autotune_loop.network.operators import (
    LOOKED_UP,
    REDUCTIONS,
    Activation,
    ElementType,
    Operator,
    OperatorKind,
    Shape,
)

# What a generator computes of one shape.
Computed = tuple[ElementType, OperatorKind, Activation, float]
TaskKey = tuple[*Computed, tuple[Shape, ...], Shape, tuple[tuple[str, int], ...]]


@dataclass(frozen=True)
class NetworkTask:
    """An operator of one shape.

    Attributes:
        input_shapes: of each input.
        settings: names and values, by name.
        places: where the network needs it: the layers of each.
        operations: multiplications and additions of one call; 0 where nothing is computed.
        element: bytes where it takes or makes them. Of these an activation that cuts off is no setting: its limits come
            with each call.
        slope: of the activation; of bytes it comes with each call, too.
    """

    kind: OperatorKind
    input_shapes: tuple[Shape, ...]
    output_shape: Shape
    settings: tuple[tuple[str, int], ...]
    activation: Activation
    places: tuple[tuple[str, ...], ...]
    operations: int
    element: ElementType = ElementType.FLOAT32
    slope: float = 0.0

    @property
    def count(self) -> int:
        """How often the network needs it."""
        return len(self.places)

    @property
    def key(self) -> TaskKey:
        """That of its operators."""
        computed = _computed(self.element, self.kind, self.activation, self.slope)
        return *computed, self.input_shapes, self.output_shape, self.settings

    @property
    def title(self) -> str:
        """'convolution 3x3 of 56x56x64 to 56x56x64, relu'."""
        known, shapes = dict(self.settings), ["x".join(map(str, shape)) for shape in self.input_shapes]
        kernel = f" {known['kernel_rows']}x{known['kernel_columns']}" if "kernel_rows" in known else ""
        stride = f" /{known['stride_rows']}" if known.get("stride_rows", 1) > 1 else ""
        # What a reduction takes further is added to its result.
        taken, added = (shapes[:1], shapes[1:]) if self.kind in REDUCTIONS else (shapes, [])
        after = [f"plus {shape}" for shape in added]
        slope = f" {self.slope:g}" if self.slope else ""
        after += [] if self.activation is Activation.NONE else [f"{self.activation.value}{slope}"]
        if "is_hidden" in known:
            after.append("hidden" if known["is_hidden"] else "carry")
        of = f"{' and '.join(taken)} to {'x'.join(map(str, self.output_shape))}"
        of_bytes = "int8 " if self.element is ElementType.INT8 else ""
        return ", ".join([f"{of_bytes}{self.kind.value}{kernel}{stride} of {of}", *after])

    def to_dict(self) -> dict[str, object]:
        """A JSON-ready form."""
        return {
            "kind": self.kind.value,
            "element": self.element.value,
            "input_shapes": [list(shape) for shape in self.input_shapes],
            "output_shape": list(self.output_shape),
            "settings": dict(self.settings),
            "activation": self.activation.value,
            "slope": self.slope,
            "count": self.count,
            "operations": self.operations,
            "places": [list(place) for place in self.places],
        }


def task_key(operator: Operator) -> TaskKey:
    """What operators of one task have in common."""
    shapes = tuple(each.shape for each in operator.inputs)
    settings = tuple(sorted(operator.settings.items()))
    computed = _computed(_element(operator), operator.kind, operator.activation, operator.slope)
    return *computed, shapes, operator.output.shape, settings


def tasks_of(operators: Iterable[Operator]) -> list[NetworkTask]:
    """The tasks of a network, those with the most work first; what only gives numbers another shape is none."""
    found: dict[TaskKey, list[Operator]] = {}
    for operator in operators:
        if operator.kind is not OperatorKind.RESHAPE:
            found.setdefault(task_key(operator), []).append(operator)
    tasks = [_task(several) for several in found.values()]
    return sorted(tasks, key=lambda task: -task.count * task.operations)


def _computed(element: ElementType, kind: OperatorKind, activation: Activation, slope: float) -> Computed:
    """What a generator computes: of bytes, what cuts off or is looked up comes with each call."""
    if element is ElementType.INT8:
        is_looked_up = activation in LOOKED_UP
        if kind is OperatorKind.ACTIVATION and not is_looked_up:
            kind = OperatorKind.RESCALE
        activation, slope = Activation.SIGMOID if is_looked_up else Activation.NONE, 0.0
    return element, kind, activation, slope


def _element(operator: Operator) -> ElementType:
    is_of_bytes = ElementType.INT8 in (operator.inputs[0].element, operator.output.element)
    return ElementType.INT8 if is_of_bytes else ElementType.FLOAT32


def _task(several: list[Operator]) -> NetworkTask:
    first = several[0]
    element, kind, activation, slope = _computed(_element(first), first.kind, first.activation, first.slope)
    return NetworkTask(
        kind,
        tuple(each.shape for each in first.inputs),
        first.output.shape,
        tuple(sorted(first.settings.items())),
        first.activation if activation is not Activation.NONE else activation,
        tuple(each.places for each in several),
        operations_of(first),
        element,
        slope,
    )


def operations_of(operator: Operator) -> int:
    """Multiplications and additions of one call; those of an activation are not counted."""
    outputs, settings = math.prod(operator.output.shape), operator.settings
    window = settings.get("kernel_rows", 1) * settings.get("kernel_columns", 1)
    if operator.kind is OperatorKind.CONVOLUTION:
        return 2 * outputs * window * operator.inputs[0].shape[-1] // settings["groups"]
    if operator.kind is OperatorKind.DENSE:
        return 2 * outputs * operator.inputs[0].shape[-1]
    if operator.kind is OperatorKind.DEPTHWISE_CONVOLUTION:
        return 2 * outputs * window
    if operator.kind is OperatorKind.POOL:
        return outputs * window
    if operator.kind is OperatorKind.GLOBAL_POOL:
        return math.prod(operator.inputs[0].shape)
    moved = (OperatorKind.CONCATENATE, OperatorKind.PAD, OperatorKind.RESHAPE)
    return 0 if operator.kind in moved else outputs
