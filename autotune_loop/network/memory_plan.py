"""Where a network's tensors are in memory: those that are needed at once lie apart, others share their place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from halide_autotune.autotune_loop.network.operators import Network, OperatorKind, Tensor

# A line of a cache, and the widest vector.
ALIGNMENT_BYTES = 64


class Storage(Enum):
    """What of a network's memory something is in; the values are those of network_run.h."""

    INPUT = 0
    OUTPUT = 1
    WORKSPACE = 2
    WEIGHTS = 3


@dataclass(frozen=True)
class Place:
    """Where a tensor begins.

    Attributes:
        index: which of the inputs or outputs it is.
        offset_bytes: in the workspace or the weights.
    """

    storage: Storage
    index: int = 0
    offset_bytes: int = 0


@dataclass(frozen=True)
class Block:
    """Memory that is needed for a while.

    Attributes:
        first, last: the operators, by their position, between which it is needed, both included.
    """

    size_bytes: int
    first: int
    last: int


@dataclass(frozen=True)
class MemoryPlan:
    """A network's memory.

    Attributes:
        places: of each tensor, by its name.
        copies: what is copied at the end into an output, by its index: what is an input or another output, too.
        least_bytes: what the tensors in the workspace take that are needed at once; no plan can do with less.
    """

    places: Mapping[str, Place]
    copies: tuple[tuple[Tensor, int], ...]
    workspace_bytes: int
    least_bytes: int


def plan_memory(network: Network) -> MemoryPlan:
    """Place the tensors: inputs and outputs are the caller's, the rest shares a workspace.

    What only has another shape is the same memory. Nothing is computed in place: a kernel may compute some numbers
    twice, where its vectors overlap at the end of a row, and would then read what it has written.
    """
    same = _same_memory(network)
    places, copies = _of_caller(network, same)
    blocks = _blocks(network, same, places)
    offsets = arrange([*blocks.values()])
    for name, offset_bytes in zip(blocks, offsets, strict=True):
        places[name] = Place(Storage.WORKSPACE, offset_bytes=offset_bytes)
    ends = [offset + block.size_bytes for offset, block in zip(offsets, blocks.values(), strict=True)]
    everywhere = {name: places[root] for name, root in same.items()}
    return MemoryPlan(everywhere, tuple(copies), max(ends, default=0), least_bytes([*blocks.values()]))


def arrange(blocks: Sequence[Block]) -> list[int]:
    """Offsets of blocks in one memory, the largest placed first, each in the smallest gap that it fits into.

    "Greedy by size for offset calculation" of Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net
    Inference (2020), as TensorFlow Lite plans its arena.
    """
    offsets: dict[int, int] = {}
    for index in sorted(range(len(blocks)), key=lambda i: (-blocks[i].size_bytes, blocks[i].first)):
        block = blocks[index]
        taken = sorted(
            (offset, offset + blocks[other].size_bytes)
            for other, offset in offsets.items()
            if blocks[other].first <= block.last and block.first <= blocks[other].last
        )
        offsets[index] = _best_gap(taken, block.size_bytes)
    return [offsets[index] for index in range(len(blocks))]


def least_bytes(blocks: Sequence[Block]) -> int:
    """The most that blocks take that are needed at once."""
    moments = {block.first for block in blocks}
    return max((sum(b.size_bytes for b in blocks if b.first <= moment <= b.last) for moment in moments), default=0)


def aligned(size_bytes: int) -> int:
    """The next size at which something else can begin."""
    return math.ceil(size_bytes / ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def tensor_bytes(tensor: Tensor) -> int:
    """What a tensor takes."""
    return math.prod(tensor.shape) * tensor.element.size_bytes


def _best_gap(taken: Sequence[tuple[int, int]], size_bytes: int) -> int:
    best, smallest, end = None, math.inf, 0
    for begin, after in taken:
        if size_bytes <= begin - end < smallest:
            best, smallest = end, begin - end
        end = max(end, after)
    return end if best is None else best


def _same_memory(network: Network) -> dict[str, str]:
    """Of each tensor the one whose memory it is."""
    same = {tensor.name: tensor.name for tensor in network.inputs}
    for operator in network.operators:
        is_same = operator.kind is OperatorKind.RESHAPE
        same[operator.output.name] = same[operator.inputs[0].name] if is_same else operator.output.name
    return same


def _of_caller(network: Network, same: Mapping[str, str]) -> tuple[dict[str, Place], list[tuple[Tensor, int]]]:
    places = {tensor.name: Place(Storage.INPUT, index) for index, tensor in enumerate(network.inputs)}
    copies = []
    for index, tensor in enumerate(network.outputs):
        if same[tensor.name] in places:
            copies.append((tensor, index))
        else:
            places[same[tensor.name]] = Place(Storage.OUTPUT, index)
    return places, copies


def _blocks(network: Network, same: Mapping[str, str], known: Mapping[str, Place]) -> dict[str, Block]:
    """What the workspace has to hold, by the name of the tensor whose memory it is."""
    blocks: dict[str, Block] = {}
    for position, operator in enumerate(network.operators):
        for tensor in (*operator.inputs, operator.output):
            name = same[tensor.name]
            if name not in known:
                first = blocks[name].first if name in blocks else position
                blocks[name] = Block(aligned(tensor_bytes(tensor)), first, position)
    return blocks
