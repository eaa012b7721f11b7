"""By what pipelines are known in a history."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from halide_autotune.targets.pipeline.shape import FuncShape, LoopShape, PipelineShape, ReadShape, StageShape
from halide_autotune.targets.values.checks import matching

# Raise it with every change of what is hashed: what was known before is then known no more.
_VERSION = 1
# Fixed extents from this on are sizes.
_LEAST_SIZE = 16
sha256_text = matching("[0-9a-f]{64}", "a SHA-256 as 64 hexadecimal digits")


@dataclass(frozen=True)
class PipelineIdentity:
    """What schedules of a pipeline depend on, hashed: its Funcs, their loops and reads.

    Constants, operators and paths are not in it: a pipeline that adds where another subtracts has the same schedules,
    and their times are measured again. Nor is the target, which a history tells by itself.

    Attributes:
        at_any_size: equal for a pipeline at all of its sizes.
        as_timed: equal where times can be compared: for equal sizes, and equal conditions.
    """

    at_any_size: Annotated[str, sha256_text]
    as_timed: Annotated[str, sha256_text]


def identity_of(shape: PipelineShape, conditions: Sequence[str] = ()) -> PipelineIdentity:
    """The identity of a pipeline at its estimates.

    Args:
        conditions: that make other times: further sizes, how many threads, what a clock counts.
    """
    funcs, with_sizes = ([_func(func, has_sizes) for func in shape.funcs] for has_sizes in (False, True))
    return PipelineIdentity(_hash(funcs), _hash([*with_sizes, *conditions]))


def size_text(shape: PipelineShape) -> str:
    """The sizes of a pipeline's outputs, such as '1280x720x3', for people."""
    outputs = (["?" if extent is None else str(extent) for extent in f.extents] for f in shape.funcs if f.is_output)
    return ", ".join("x".join(extents) or "scalar" for extents in outputs)


def _hash(told: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps([_VERSION, *told]).encode()).hexdigest()


def _func(func: FuncShape, has_sizes: bool) -> list[object]:
    named = [func.name, func.args, func.extents if has_sizes else None, func.bounded]
    stages = (_stage(stage, has_sizes) for stage in func.stages)
    return [*named, func.is_output, func.is_extern, func.value_bytes, *stages]


def _stage(stage: StageShape, has_sizes: bool) -> list[object]:
    loops = [_loop(loop, has_sizes) for loop in stage.loops]
    return [loops, [_read(read) for read in stage.reads], stage.is_associative, stage.has_floats]


def _loop(loop: LoopShape, has_sizes: bool) -> list[object]:
    # A window or a number of colours makes another pipeline; the channels of a layer are a size, fixed as they may be.
    is_told = has_sizes or (loop.is_constant and (loop.extent or 0) < _LEAST_SIZE)
    return [loop.name, loop.kind, loop.extent if is_told else None]


def _read(read: ReadShape) -> list[object]:
    dimensions = [[sorted((one.slopes or {}).items()), one.width] for one in read.dimensions]
    return [read.name, read.is_input, read.places, dimensions]
