"""The sketches of a pipeline, the most promising first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.repair import repair
from halide_autotune.autotune_loop.sketches.block import is_largely_sums
from halide_autotune.autotune_loop.sketches.builder import SketchBuilder
from halide_autotune.autotune_loop.sketches.inlined import LARGE_BYTES, bytes_of, is_scan
from halide_autotune.autotune_loop.sketches.style import Channels, Fusion, Style

_MOST = 16
# More than pictures have.
_MANY_ROWS = 2**20


@dataclass(frozen=True)
class Sketch:
    """A starting schedule."""

    name: str
    draft: Draft


def sketches(names: PipelineNames, cores: int) -> Iterator[Sketch]:
    """Starting schedules of a pipeline, all different, the most promising first; each is made when it is asked for."""
    found: list[Sketch] = []
    for name, style in _styles().items():
        if len(found) == _MOST:
            break
        if not _applies(style, names):
            continue
        draft = repair(SketchBuilder(names, cores, style).draft(), names)
        if all(draft != other.draft for other in found):
            found.append(Sketch(name, draft))
            yield found[-1]


def _applies(style: Style, names: PipelineNames) -> bool:
    if style.block is not None:
        # A large scan is taken in strips: else all of it is in memory between its steps and the sums.
        is_of_strips = style.fusion is Fusion.COLUMNS and style.columns is not None
        return is_largely_sums(names) and (is_of_strips or not _has_large_scan(names))
    if style.pairs:
        return _has_halves(names)
    is_of_scans = style.fusion is Fusion.COLUMNS or (style.columns is not None and style.channels is Channels.OUTSIDE)
    return not is_of_scans or _has_large_scan(names)


def _has_halves(names: PipelineNames) -> bool:
    """Whether something is read at half the pace, as a picture is that is enlarged."""
    reads = [read for shape in names.shapes.values() for stage in shape.stages for read in stage.reads]
    return any(read.halved_loops for read in reads)


def _has_large_scan(names: PipelineNames) -> bool:
    return any(is_scan(shape) and bytes_of(shape) > LARGE_BYTES for shape in names.shapes.values())


def _styles() -> dict[str, Style]:
    """The styles by name: each kind once, then variants.

    In that order the best of the first four that apply is within 5 % of the best of all, in the geometric mean over
    eight of Halide's apps and hdr-plus.
    """
    rows = Style(Fusion.ROWS)
    pairs = replace(rows, pairs=True, is_wide=True, budget=24)
    strips = Style(Fusion.STRIPS, rows=8, redundancy=2.0)
    tiles = replace(strips, redundancy=2.5)
    columns = Style(Fusion.COLUMNS, redundancy=2.0, channels=Channels.OUTSIDE)
    root = Style(Fusion.ROOT)
    return {
        "rows-block-0": replace(rows, block=0),
        "columns-block-0": replace(columns, block=0),
        "columns-64-block-0": replace(columns, columns=64, block=0),
        "columns-256-block-0": replace(columns, columns=256, block=0),
        "rows": rows,
        "rows-block-1": replace(rows, block=1),
        "columns-block-1": replace(columns, block=1),
        "columns-64": replace(columns, columns=64),
        "rows-clones": replace(rows, clones=True),
        "rows-block-2": replace(rows, block=2),
        "columns-block-2": replace(columns, block=2),
        "tiles-32x16": replace(tiles, rows=16, columns=32),
        "tiles-32x16-channels-outside": replace(tiles, rows=16, columns=32, channels=Channels.OUTSIDE),
        "rows-parts": replace(rows, parts=2),
        "rows-pairs-per-vector": replace(pairs, per_vector=True),
        "rows-wide": replace(rows, is_wide=True),
        "root": root,
        "rows-pairs": pairs,
        "columns-256": replace(columns, columns=256),
        "rows-per-vector": replace(rows, per_vector=True),
        "rows-lavish": replace(rows, budget=160),
        "rows-channels-around": replace(rows, channels=Channels.AROUND_ROWS),
        "rows-long": replace(rows, rows=_MANY_ROWS),
        "rows-many-parts": replace(rows, parts=8),
        "rows-8": replace(rows, rows=8),
        "rows-64": replace(rows, rows=64),
        "tiles-of-rows": replace(rows, columns=256, rows=64),
        "strips-8-channels-outside": replace(strips, channels=Channels.OUTSIDE),
        "tiles-256x32": replace(tiles, rows=32, columns=256),
        "columns-64-block-1": replace(columns, columns=64, block=1),
        "rows-block-3": replace(rows, block=3),
        "rows-8-block-0": replace(rows, rows=8, block=0),
        "strips-8": strips,
        "rows-24": replace(rows, budget=24),
        "tiles-128x64": replace(tiles, rows=64, columns=128),
        "rows-thrifty": replace(rows, budget=12),
        "root-wide": replace(root, is_wide=True),
    }
