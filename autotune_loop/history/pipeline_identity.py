"""By what equal pipelines are known in a history."""

from __future__ import annotations

import hashlib
import json

from halide_autotune.targets.pipeline.shape import FuncShape, PipelineShape, ReadShape, StageShape

# Raise it with every change of what is hashed: what was known before is then known no more.
_VERSION = 1


def pipeline_sha256(shape: PipelineShape) -> str:
    """The hash of what schedules of a pipeline depend on: its Funcs, their sizes, loops and reads.

    Constants, operators and paths are not in it: a pipeline that adds where another subtracts has the same schedules,
    and their times are measured again. Nor is the target, which a history tells by itself.
    """
    told = [_VERSION, *map(_func, shape.funcs)]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def _func(func: FuncShape) -> list[object]:
    named = [func.name, func.args, func.extents, func.bounded]
    return [*named, func.is_output, func.is_extern, func.value_bytes, *map(_stage, func.stages)]


def _stage(stage: StageShape) -> list[object]:
    loops = [[loop.name, loop.kind, loop.extent] for loop in stage.loops]
    return [loops, [_read(read) for read in stage.reads], stage.is_associative, stage.has_floats]


def _read(read: ReadShape) -> list[object]:
    dimensions = [[sorted((one.slopes or {}).items()), one.width] for one in read.dimensions]
    return [read.name, read.is_input, read.places, dimensions]
