"""Pipelines for tests of drafts, without a generator: small ones by hand, and the examples as they were described.

`tests/unit/autotune_loop/draft/test_same_code.py` holds the examples' descriptions to what the plug-in writes today.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from pathlib import Path

from halide_autotune.autotune_loop.draft.from_schedule import draft_of
from halide_autotune.autotune_loop.draft.model import Draft, FuncDraft, LoopKind, StageDraft
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.schedule.directives import Split
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.autotune_loop.schedule.values import ROOT
from halide_autotune.autotune_loop.sketches.sketches import sketches
from halide_autotune.targets.pipeline.shape import (
    FuncShape,
    LoopShape,
    PipelineShape,
    ReadDimension,
    ReadShape,
    StageShape,
    read_shape,
)

UNIT = Path(__file__).parent / "unit" / "autotune_loop"
SHAPES = UNIT / "draft" / "shapes"
HEADERS = UNIT / "schedule" / "headers"
EXAMPLES = tuple(sorted(path.stem for path in SHAPES.glob("*.json") if path.stem != "scan"))
# With a reduction that cannot be merged, see generators/scan.py beside them.
RECORDED = (*EXAMPLES, "scan")
STEP = 192


@cache
def recorded(name: str) -> PipelineNames:
    """An example's pipeline at its own size, for AVX2."""
    return PipelineNames(read_shape(SHAPES / f"{name}.json"))


@cache
def header_drafts(name: str) -> tuple[Draft, ...]:
    """What Halide's autoschedulers found for an example, on several targets."""
    texts = [path.read_text() for path in sorted(HEADERS.glob(f"{name}_*.schedule.h")) if "_cuda_" not in path.name]
    return tuple(draft_of(parse_schedule(text), recorded(name)) for text in texts)


@cache
def starting_drafts(name: str) -> tuple[Draft, ...]:
    """Schedules of an example that evolution may start from."""
    return (*header_drafts(name), *(sketch.draft for sketch in sketches(recorded(name), 4)))


def loop(name: str, extent: int | None, kind: str = "pure", *, is_constant: bool | None = None) -> LoopShape:
    """A loop; a reduction's is of a constant extent unless that is said."""
    constant = kind != "pure" if is_constant is None else is_constant
    return LoopShape(name, kind, extent, constant)  # type: ignore[arg-type]  # a kind as text


def read(
    name: str, *dimensions: tuple[str | None, int] | tuple[str | None, int, int], is_input: bool = False
) -> ReadShape:
    """A read; each dimension follows a loop (none: data decide), has a width and, if not one, a slope."""
    described = []
    for follows, width, *slope in dimensions:
        known = follows is not None
        described.append(
            # Known, so it is no None.
            ReadDimension({follows: (slope or [STEP])[0]} if known else None, width if known else None)  # type: ignore[dict-item]
        )
    return ReadShape(name, is_input, math.prod(one[1] for one in dimensions), tuple(described))


def stage(
    *reads: ReadShape, loops: tuple[LoopShape, ...], operations: int = 5, is_associative: bool = False
) -> StageShape:
    """A definition; it reads itself where it is a reduction."""
    reads_itself = any(each.kind == "ordered" for each in loops)
    return StageShape(loops, reads, operations, False, reads_itself, is_associative)


def func(
    name: str, extents: tuple[int | None, ...], *reads: ReadShape, updates: tuple[StageShape, ...] = (), **more: object
) -> FuncShape:
    """A Func of x, y, z as far as it has extents."""
    args = tuple("xyz"[: len(extents)])
    pure = stage(*reads, loops=tuple(loop(arg, extent) for arg, extent in zip(args, extents, strict=True)))
    about: dict[str, object] = {
        "is_output": name == "output",
        "is_extern": False,
        "value_bytes": 4,
        "narrowest_bytes": 4,
        "bounded": (),
        **more,
    }
    return FuncShape(name, args, extents, stages=(pure, *updates), **about)  # type: ignore[arg-type]  # fields by name


def pipeline(*funcs: FuncShape) -> PipelineNames:
    """The names of a pipeline whose producers come first."""
    return PipelineNames(PipelineShape(32, funcs))


def plain_draft(names: PipelineNames, **computed: object) -> Draft:
    """Every Func with its loops as they are, at the root unless `computed` has its level; None is inlined."""
    funcs = {}
    for name, shape in names.shapes.items():
        stages = tuple(
            StageDraft((), tuple(each.identifier for each in names.loops(name, index)))
            for index in range(len(shape.stages))
        )
        funcs[name] = FuncDraft(computed.get(name, ROOT), stages)  # type: ignore[arg-type]  # levels by name
    return Draft(funcs)


def for_target(names: PipelineNames, only: str = "", **facts: object) -> PipelineNames:
    """The pipeline as it is described for a target with other facts of its stages, or of one Func's."""
    funcs = tuple(
        replace(shape, stages=tuple(replace(each, **facts) for each in shape.stages))  # type: ignore[arg-type]  # by name
        if only in ("", shape.name)
        else shape
        for shape in names.shape.funcs
    )
    return PipelineNames(replace(names.shape, funcs=funcs))


def with_vectors(draft: Draft) -> set[str]:
    """The Funcs that are computed in vectors."""
    return {
        name
        for name, scheduled in draft.funcs.items()
        if any(LoopKind.VECTORIZED in each.kinds.values() for each in scheduled.stages) and not scheduled.is_inlined
    }


def chain() -> PipelineNames:
    """`first` is read three rows high by `second`, which is read three columns wide by the output (64 x 32)."""
    return pipeline(
        func("first", (66, 34)),
        func("second", (66, 32), read("first", ("x", 1), ("y", 3))),
        func("output", (64, 32), read("second", ("x", 3), ("y", 1))),
    )


def lookups(
    table: ReadShape | None = None, *, values: int = 12, where: ReadShape | None = None, chosen: str | None = "z"
) -> PipelineNames:
    """`looked_up` reads `values` of a place of `table` (32 x 10) that `place` says, and the output reads four of them.

    Args:
        table: how else the table is read.
        where: how else `place` is.
        chosen: the output's loop that says which of the values it reads; None are data.
    """
    table = table or read("table", ("x", 1), (None, 1), ("z", 1))
    where = where or read("place", ("x", 1), ("y", 1))
    reads = read("looked_up", ("x", 1), ("y", 1), (chosen, 4, 4 * STEP) if chosen else (None, 4))
    return pipeline(
        func("source", (32, 10, values)),
        func("table", (32, 10, values), read("source", ("x", 1), ("y", 1), ("z", 1))),
        func("place", (64, 48)),
        func("looked_up", (64, 48, values), table, where),
        func("output", (64, 48, 3), reads),
    )


def channels(*, extent: int = 3, cases: tuple[str, ...] = ("z",), **more: object) -> PipelineNames:
    """The output reads `colour` at its own point, which computes each of a few channels (z) in its own way."""
    sizes = (64, 48, extent)
    shape = func("colour", sizes, read("source", ("x", 1), ("y", 1), ("z", 1)))
    return pipeline(
        func("source", sizes),
        replace(shape, stages=(replace(shape.stages[0], cases=cases),)),
        replace(func("output", sizes, read("colour", ("x", 1), ("y", 1), ("z", 1))), **more),  # type: ignore[arg-type]  # fields by name
    )


def staged() -> PipelineNames:
    """The output reads `foreign`, which is no Halide code and reads `before`: it has no loops of its own."""
    foreign = func("foreign", (64, 48), is_extern=True)
    of_all = read("before", (None, 1), (None, 1))
    return pipeline(
        func("before", (64, 48)),
        replace(foreign, stages=(stage(of_all, loops=()),)),
        func("output", (64, 48), read("foreign", ("x", 1), ("y", 1))),
    )


def by_rows(draft: Draft) -> Draft:
    """A chain's row for each task, in vectors of 16."""
    for name in ("first", "second", "output"):
        stage = with_split(draft.funcs[name].stages[0], "x", 16, LoopKind.VECTORIZED).with_kind("y", LoopKind.PARALLEL)
        draft = draft.with_func(name, draft.funcs[name].with_stage(0, stage))
    return draft


def with_split(stage: StageDraft, old: str, factor: int, *kinds: LoopKind) -> StageDraft:
    """The stage with a loop split into `<old>o` and `<old>i` at its place; `kinds` are the inner one's."""
    place = stage.order.index(old)
    outer, inner = f"{old}o", f"{old}i"
    order = (*stage.order[:place], inner, outer, *stage.order[place + 1 :])
    made = StageDraft((*stage.transforms, Split(old, outer, inner, factor)), order, dict(stage.kinds), stage.also)
    for kind in kinds:
        made = made.with_kind(inner, kind)
    return made
