"""A loop nest as a tree of rows of numbers, one for each loop: what a network that walks loops reads.

The extended statements of AutoTVM's TreeGRU (Chen et al., Learning to Optimize Tensor Programs, 2018, section 3.1 and
appendix A): of each loop its kind, its extent and how often it runs, what it touches, and what its body computes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from halide_autotune.autotune_loop.lowered.features import ACCESSES, OPERATIONS, access_instructions, access_kind
from halide_autotune.autotune_loop.lowered.traffic import TouchingLoop, extent_of, touching
from halide_autotune.targets.lowering.loop_nest import Loop, LoopNest

_KINDS = ("root", "branch", "serial", "parallel", "gpu_block", "gpu_thread", "gpu_lane")
WORK = "operations on the critical path"
# Kinds are 1 or 0; all others the logarithm to base 2 of one more than that, over `SCALE`.
LOOP_ROW_NAMES = (
    *_KINDS,
    *("extent", "iterations", "iterations on the critical path", "branches", "bytes of an iteration", "bytes"),
    *("heap bytes", "stack bytes", "operations of the body", "operations", WORK),
    *OPERATIONS,
    *ACCESSES,
)
_COLUMNS = {name: place for place, name in enumerate(LOOP_ROW_NAMES)}
SCALE = 8.0
Rows = npt.NDArray[np.float32]


@dataclass(frozen=True)
class LoopRows:
    """The loops of a nest, each after the one around it.

    Attributes:
        rows: loop × `LOOP_ROW_NAMES`.
        parents: of each loop the place of the one around it; -1 for the root.
    """

    rows: Rows
    parents: tuple[int, ...]


def loop_rows(nest: LoopNest, cores: int) -> LoopRows:
    """The rows of a loop nest.

    Args:
        cores: that parallel loops run on.
    """
    found: list[tuple[Rows, int]] = []
    _walk(_Place(touching(nest.root), -1, 1.0, 1.0), cores, nest.vector_bytes, found)
    return LoopRows(np.array([row for row, _ in found]), tuple(parent for _, parent in found))


@dataclass(frozen=True)
class _Place:
    """A loop where it is.

    Attributes:
        times: how often it is run.
        path: the same of the core that has most to do.
    """

    at: TouchingLoop
    parent: int
    times: float
    path: float
    in_task: bool = False


def _walk(place: _Place, cores: int, vector_bytes: int, found: list[tuple[Rows, int]]) -> None:
    """Add the row of a loop with its parent, and then those of the loops inside."""
    loop, extent = place.at.loop, extent_of(place.at.loop)
    begins_task = loop.kind == "parallel" and not place.in_task
    times, path = place.times * extent, place.path * (math.ceil(extent / cores) if begins_task else extent)
    body = _body(loop, vector_bytes)
    operations = sum(body.values())
    is_root = loop.kind == "root"
    body |= {
        "extent": extent,
        "iterations": times,
        "iterations on the critical path": path,
        "branches": float(loop.branches),
        # What a whole pipeline touches is nearly the same for all of its schedules, and never quite.
        "bytes of an iteration": 0.0 if is_root else place.at.body_bytes,
        "bytes": 0.0 if is_root else place.at.all_bytes,
        "heap bytes": sum(each.bytes or 0.0 for each in loop.allocations if each.memory == "heap"),
        "stack bytes": sum(each.bytes or 0.0 for each in loop.allocations if each.memory != "heap"),
        "operations of the body": operations,
        "operations": times * operations,
        WORK: path * operations,
    }
    own = len(found)
    found.append((_row(loop.kind, body), place.parent))
    for each in place.at.inside:
        inside = _Place(each, own, times, path, place.in_task or begins_task)
        _walk(inside, cores, vector_bytes, found)


def _row(kind: str, numbers: Mapping[str, float]) -> Rows:
    row = np.zeros(len(LOOP_ROW_NAMES), dtype=np.float32)
    row[_COLUMNS[kind]] = 1.0
    for name, number in numbers.items():
        if name in _COLUMNS:
            row[_COLUMNS[name]] = math.log2(1.0 + max(0.0, number)) / SCALE
    return row


def _body(loop: Loop, vector_bytes: int) -> dict[str, float]:
    """How many operations and accesses of each kind an iteration has, without the loops inside."""
    found: defaultdict[str, float] = defaultdict(float)
    for computation in loop.computations:
        for kind, count in computation.operations.items():
            found[kind] += count
        for access in computation.accesses:
            found[access_kind(access)] += access.count * access_instructions(access, vector_bytes)
    return dict(found)
