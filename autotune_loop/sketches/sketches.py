"""The sketches of a pipeline, the most promising first."""

from __future__ import annotations

from dataclasses import dataclass, replace

from autotune_loop.draft.model import Draft
from autotune_loop.draft.names import PipelineNames
from autotune_loop.draft.repair import repair
from autotune_loop.sketches.builder import SketchBuilder
from autotune_loop.sketches.style import Channels, Fusion, Style
from targets.pipeline.shape import STEP

_MOST = 16


@dataclass(frozen=True)
class Sketch:
    """A starting schedule."""

    name: str
    draft: Draft


def sketches(names: PipelineNames, cores: int) -> tuple[Sketch, ...]:
    """Starting schedules of a pipeline, all different, the most promising first."""
    found: list[Sketch] = []
    for style in _styles():
        if len(found) == _MOST:
            break
        if style.pairs and not _has_halves(names):
            continue
        draft = repair(SketchBuilder(names, cores, style).draft(), names)
        if all(draft != other.draft for other in found):
            found.append(Sketch(style.name, draft))
    return tuple(found)


def _has_halves(names: PipelineNames) -> bool:
    """Whether something is read at half the pace, as a picture is that is enlarged."""
    reads = [read for shape in names.shapes.values() for stage in shape.stages for read in stage.reads]
    slopes = [dimension.slopes or {} for read in reads for dimension in read.dimensions]
    return any(STEP // 2 in of_loops.values() for of_loops in slopes)


def _styles() -> list[Style]:
    rows = Style("rows", Fusion.ROWS)
    pairs = replace(rows, name="rows-pairs", pairs=True, is_wide=True, budget=24)
    strips = Style("strips", Fusion.STRIPS, rows=8, redundancy=2.0)
    tiles = replace(strips, redundancy=2.5)
    root = Style("root", Fusion.ROOT)
    return [
        rows,
        replace(rows, name="rows-parts", parts=2),
        pairs,
        replace(pairs, name="rows-pairs-per-vector", per_vector=True),
        replace(rows, name="rows-clones", clones=True),
        replace(rows, name="rows-wide", is_wide=True),
        replace(rows, name="rows-per-vector", per_vector=True),
        replace(rows, name="rows-blocks-3x4", block=(3, 4)),
        replace(rows, name="rows-lavish", budget=160),
        replace(rows, name="rows-channels-around", channels=Channels.AROUND_ROWS),
        replace(tiles, name="tiles-32x16", rows=16, columns=32),
        replace(rows, name="rows-long", rows=None),
        replace(rows, name="rows-many-parts", parts=8),
        replace(rows, name="rows-8", rows=8),
        replace(rows, name="rows-64", rows=64),
        replace(rows, name="tiles-of-rows", columns=256, rows=64),
        replace(strips, name="strips-8-channels-outside", channels=Channels.OUTSIDE),
        replace(tiles, name="tiles-256x32", rows=32, columns=256),
        replace(rows, name="rows-blocks-4x3", block=(4, 3)),
        replace(rows, name="rows-blocks-2x6", block=(2, 6)),
        replace(rows, name="rows-8-blocks-3x4", rows=8, block=(3, 4)),
        root,
        replace(strips, name="strips-8"),
        replace(rows, name="rows-24", budget=24),
        replace(tiles, name="tiles-128x64", rows=64, columns=128),
        replace(rows, name="rows-thrifty", budget=12),
        replace(root, name="root-wide", is_wide=True),
    ]
