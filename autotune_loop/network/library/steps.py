"""What a network's library does, step by step: which kernel is called, or what is moved, with what of the memory."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from halide_autotune.autotune_loop.network.memory_plan import MemoryPlan, Place, Storage, aligned, plan_memory
from halide_autotune.autotune_loop.network.operators import (
    REDUCTIONS,
    Network,
    Operator,
    OperatorKind,
    Shape,
    Tensor,
    as_rows,
)
from halide_autotune.autotune_loop.network.packed_floats import in_blocks
from halide_autotune.autotune_loop.network.tasks import NetworkTask, task_key

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

_OF_PIXELS = (
    OperatorKind.ADD,
    OperatorKind.MULTIPLY,
    OperatorKind.SUBTRACT,
    OperatorKind.SCALE,
    OperatorKind.ACTIVATION,
    OperatorKind.QUANTIZE,
    OperatorKind.DEQUANTIZE,
    OperatorKind.RESCALE,
)


@dataclass(frozen=True)
class Pads:
    """What is put around a picture.

    Attributes:
        rows, columns: before it.
        value: of bytes the one that stands for 0; of floats 0.
    """

    rows: int
    columns: int
    value: int


@dataclass(frozen=True)
class Argument:
    """What a step reads or writes.

    Attributes:
        extents: of its dimensions, the innermost first, as Halide counts them; none for a single number.
        type: of its numbers, by NumPy's name: float32, int8 or int32.
    """

    place: Place
    extents: Shape
    type: str


@dataclass(frozen=True)
class Step:
    """One layer of a library.

    Attributes:
        name: the model's layers that it computes.
        output: the tensor that it makes.
        arguments: of its kernel; the output is the last one.
        task: the position of the task whose kernel it calls; None where numbers are only moved.
        pads: of what moves numbers: what is put around the picture; None joins the inputs' channels.
    """

    name: str
    output: Tensor
    arguments: tuple[Argument, ...]
    task: int | None = None
    pads: Pads | None = None


@dataclass(frozen=True)
class Steps:
    """A network as it is run.

    Attributes:
        weights: of all steps, each at its place.
    """

    network: Network
    memory: MemoryPlan
    steps: tuple[Step, ...]
    weights: bytes


def network_steps(network: Network, tasks: Sequence[NetworkTask], weights: Sequence[tuple[Array, ...]]) -> Steps:
    """Plan the memory of a network, lay out its weights, and list what is done.

    Args:
        tasks: those that have kernels.
        weights: of each operator; those of sums of products of floats are put into blocks here.
    """
    memory, packed = plan_memory(network), _Weights()
    numbers = {task.key: number for number, task in enumerate(tasks)}
    steps = []
    for operator, own in zip(network.operators, weights, strict=True):
        if operator.kind is not OperatorKind.RESHAPE:
            further = [packed.add(each) for each in in_blocks(operator, own)]
            steps.append(_step(operator, memory.places, further, numbers.get(task_key(operator))))
    for tensor, index in memory.copies:
        flat = (math.prod(tensor.shape), 1)
        ends = (memory.places[tensor.name], Place(Storage.OUTPUT, index))
        arguments = tuple(Argument(place, flat, tensor.element.value) for place in ends)
        steps.append(Step(f"output {index}", tensor, arguments))
    return Steps(network, memory, tuple(steps), bytes(packed.data))


def _step(operator: Operator, places: Mapping[str, Place], weights: Sequence[Argument], task: int | None) -> Step:
    name, output = "+".join(operator.places), operator.output
    first, *others = [_argument(operator, tensor, places) for tensor in operator.inputs]
    made = _argument(operator, output, places)
    if operator.kind is OperatorKind.GLOBAL_POOL:
        # It makes a vector, whatever the model calls it.
        made = replace(made, extents=output.shape[-1:])
    if operator.kind is OperatorKind.PAD:
        before = (operator.settings["pad_rows_before"], operator.settings["pad_columns_before"])
        value = 0 if output.quantization is None else output.quantization.zero_point
        return Step(name, output, (first, made), pads=Pads(*before, value))
    # What is added to a sum of products comes after its weights.
    taken = (first, *weights, *others) if operator.kind in REDUCTIONS else (first, *others, *weights)
    return Step(name, output, (*taken, made), task)


def _argument(operator: Operator, tensor: Tensor, places: Mapping[str, Place]) -> Argument:
    return Argument(places[tensor.name], _extents(operator, tensor.shape), tensor.element.value)


def _extents(operator: Operator, shape: Shape) -> Shape:
    """The dimensions that an operator takes a tensor for."""
    if operator.kind in (OperatorKind.CONCATENATE, OperatorKind.SOFTMAX):
        return (shape[-1], math.prod(shape[:-1]))
    if operator.kind not in _OF_PIXELS:
        return tuple(reversed(shape))
    return tuple(reversed(as_rows(operator.kind, [each.shape for each in operator.inputs], shape)))


@dataclass
class _Weights:
    """Arrays one after the other, equal ones once: a layer may be used twice."""

    data: bytearray = field(default_factory=bytearray)
    known: dict[bytes, int] = field(default_factory=dict)

    def add(self, array: Array) -> Argument:
        content = array.tobytes()
        key = hashlib.sha256(content).digest()
        if key not in self.known:
            self.known[key] = len(self.data)
            self.data += content + bytes(aligned(len(content)) - len(content))
        place = Place(Storage.WEIGHTS, offset_bytes=self.known[key])
        return Argument(place, tuple(reversed(array.shape)), array.dtype.name)
