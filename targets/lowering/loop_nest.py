"""The loop nest that Halide lowers a schedule to, at the pipeline's estimates: loops, operations, accesses, memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.values.records import Source, plain, record

# `version` of lowering_plugin.cpp.
VERSION = 4


@dataclass(frozen=True)
class Access:
    """Reads or writes of a buffer that are alike, in the body of one loop.

    Attributes:
        count: how many there are.
        copies: how they lie, by how many elements a step moves and how many steps there are: those of a loop that is
            unrolled, or the taps of a stencil. None move where all are at one place, or data decides.
        is_predicated: lanes may be left out.
        lanes: elements of one access.
        lane_stride: elements from one lane to the next; 0 reads one element for all; None if they are gathered.
        strides: by loop, the outermost first, elements that a step of it moves the access; None if data decides, and
            within no bounds.
        spread: what moves it besides loops and copies, by how many elements a step and how many steps: gathered lanes,
            and data within bounds. Of gathered lanes it is empty if they lie anywhere.
    """

    buffer: str
    count: int
    copies: tuple[tuple[float, int], ...]
    is_store: bool
    is_predicated: bool
    lanes: int
    element_bytes: int
    lane_stride: int | None
    strides: tuple[float, ...] | None
    spread: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Computation:
    """What one Func's stages do in the body of a loop; what is in the loops inside is theirs.

    Attributes:
        func: empty for what belongs to none.
        operations: kind → how many, in vectors of the target's width, or scalars. A kind is that of the values (int,
            float) and of the operation: `float_multiply`; `address` are scalars that say where to read or write.
    """

    func: str
    operations: Mapping[str, float]
    accesses: tuple[Access, ...]


@dataclass(frozen=True)
class Allocation:
    """Memory that the body of a loop takes.

    Attributes:
        bytes: None if data decides.
        is_constant: the same whatever the sizes are, so that it may be on the stack.
        memory: where the schedule puts it; heap stands for Halide's own choice, too.
    """

    buffer: str
    bytes: float | None
    is_constant: bool
    memory: str


@dataclass(frozen=True)
class Loop:
    """A loop as it is in the middle of those around it. Vectors and unrolled loops are no loops any more.

    A branch counts as a loop, too, which moves nothing: its extent is the share of the iterations that take it.

    Attributes:
        func: whose values it computes.
        extent: None if data decides.
        branches: conditions in its body.
    """

    name: str
    func: str
    kind: Literal["root", "branch", "serial", "parallel", "gpu_block", "gpu_thread", "gpu_lane"]
    extent: float | None
    branches: int
    computations: tuple[Computation, ...]
    allocations: tuple[Allocation, ...]
    loops: tuple[Loop, ...]


@dataclass(frozen=True)
class LoopNest:
    """A lowered schedule.

    Attributes:
        vector_bytes: the width of the target's vectors.
        root: stands for the whole pipeline; what is in its body happens once.
    """

    version: int
    vector_bytes: int
    root: Loop


def parse_loop_nest(text: str, name: str | Path) -> LoopNest:
    """Read a loop nest from JSON.

    Args:
        name: starts messages.

    Raises:
        GeneratorError: it is damaged, or of another version.
    """
    source = Source(name, GeneratorError)
    nest = source.check(record(LoopNest), source.json(text))
    if nest.version != VERSION:
        raise source.refuse(f"its version is {nest.version}, not {VERSION}.")
    return nest


def print_loop_nest(nest: LoopNest) -> str:
    """Return a loop nest as `parse_loop_nest` reads it."""
    return json.dumps(plain(nest), separators=(",", ":"))
