"""What the loops of a Func are good for: vectors, unrolling, rows of tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from halide_autotune.autotune_loop.draft.structure import DraftStructure, Site
from halide_autotune.targets.pipeline.shape import FuncShape

# Up to so many iterations a loop is unrolled as if it were over channels.
CHANNELS = 4
# A shorter dimension has no rows worth splitting.
_ROWS = 8
# Work, in operations, below which starting tasks costs more than it saves.
WORTH_TASKS = 2**16


@dataclass(frozen=True)
class Roles:
    """The loops over a Func's arguments.

    Attributes:
        vector: the loop whose iterations fill vectors.
        lanes: how many of them.
        channels: loops of few iterations.
        row: the outermost of the long loops but for that of the vectors: tasks are rows of it.
        others: those between, the innermost first.
        extents: of all.
    """

    vector: str | None
    lanes: int
    channels: tuple[str, ...]
    row: str | None
    others: tuple[str, ...]
    extents: dict[str, int]


def roles_of(
    structure: DraftStructure, name: str, extents: Sequence[int], lanes: int, along: str | None = None
) -> Roles:
    """The roles of the loops of so much of a Func.

    Args:
        along: the loop of the vectors, which are then as long as it if that is less than two of them; None is the
            first that fills them.
    """
    shape = structure.shape(name)
    whole = () if shape is None else shape.extents
    loops = [variable.identifier for variable in structure.loops(Site(name, 0))][: len(extents)]
    sizes = dict(zip(loops, extents, strict=False))
    vector = along or next((loop for loop in loops if sizes[loop] >= lanes), None)
    if along is not None and lanes < sizes[along] < 2 * lanes:
        lanes = sizes[along]
    if vector is None:
        vector = next((loop for loop in loops if sizes[loop] > CHANNELS), None)
        lanes = 1 if vector is None else 1 << (sizes[vector].bit_length() - 1)
    rest = [loop for loop in loops if loop != vector]
    few = {loop for loop, extent in zip(loops, whole, strict=False) if extent is not None and extent <= CHANNELS}
    channels = tuple(loop for loop in rest if loop in few and sizes[loop] > 1)
    rest = [loop for loop in rest if loop not in channels]
    longest = max((sizes[loop] for loop in rest), default=1)
    long = [loop for loop in rest if sizes[loop] >= max(_ROWS, longest / 2)]
    row = long[-1] if long else None
    others = tuple(loop for loop in rest if loop != row)
    return Roles(vector, max(1, lanes), channels, row, others, sizes)


def work_of(shape: FuncShape) -> int:
    """How many operations a Func is, computed once."""
    sizes = dict(zip(shape.args, shape.extents, strict=True))
    total = 0
    for stage in shape.stages:
        extents = [(loop.extent if loop.is_reduction else sizes.get(loop.name)) or 1 for loop in stage.loops]
        total += math.prod(extents) * (stage.operations + 1)
    return total
