"""Which loops Halide may compile in parts, as drafts and as schedules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from halide_autotune.autotune_loop.draft.edit import split
from halide_autotune.autotune_loop.draft.features import FEATURE_NAMES, features_of
from halide_autotune.autotune_loop.draft.from_schedule import draft_of
from halide_autotune.autotune_loop.draft.model import Draft, LoopKind, Partitioning, StageDraft
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.partitioning import (
    whole_loops,
    with_partitioning,
    with_partitioning_read,
    with_short_code,
)
from halide_autotune.autotune_loop.draft.repair import repair
from halide_autotune.autotune_loop.draft.structure import DraftStructure
from halide_autotune.autotune_loop.draft.to_schedule import schedule_of
from halide_autotune.autotune_loop.schedule.as_json import parse_json, print_json
from halide_autotune.autotune_loop.schedule.check import check_schedule
from halide_autotune.autotune_loop.schedule.directives import Atomic, PartitionLoop
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.autotune_loop.schedule.print_header import print_header
from halide_autotune.autotune_loop.schedule.values import LoopLevel, Partition
from tests.drafted_pipelines import (
    by_rows,
    chain,
    func,
    loop,
    pipeline,
    plain_draft,
    read,
    recorded,
    stage,
    starting_drafts,
)

# Vectors and tiles of x, unrolled channels, rows in tasks; from the inside.
TILED = StageDraft((), ("x", "c", "y"), {"x": LoopKind.VECTORIZED, "c": LoopKind.UNROLLED, "y": LoopKind.PARALLEL})
TILED = split(split(TILED, "x", 64)[0].with_kind("xo", None), "xi", 8)[0]
TILED = (
    replace(TILED, order=("xii", "c", "xio", "y", "xo")).with_kind("xio", None).with_kind("xii", LoopKind.VECTORIZED)
)


@pytest.mark.parametrize(
    ("partitioning", "whole"),
    [
        (Partitioning.AUTO, ()),
        (Partitioning.INNER, ("c", "y")),
        (Partitioning.NONE, ("c", "xio", "y", "xo")),
    ],
)
def test_loops_over_the_vectors_argument_and_the_innermost_may_have_parts(
    partitioning: Partitioning, whole: tuple[str, ...]
) -> None:
    assert whole_loops(replace(TILED, partitioning=partitioning)) == whole


def test_beside_vectors_of_channels_the_innermost_loop_may_have_parts() -> None:
    looked_up = StageDraft((), ("c", "x", "y"), {"c": LoopKind.VECTORIZED}, partitioning=Partitioning.INNER)
    assert whole_loops(looked_up) == ("y",)


def test_of_those_that_forbid_the_same_it_is_the_first() -> None:
    one_loop = StageDraft((), ("x",), {"x": LoopKind.VECTORIZED})
    assert {with_partitioning(one_loop, each).partitioning for each in Partitioning} == {Partitioning.AUTO}
    no_vectors = StageDraft((), ("x", "y"), {"x": LoopKind.UNROLLED})
    assert with_partitioning(no_vectors, Partitioning.NONE).partitioning is Partitioning.NONE
    assert with_partitioning(TILED, Partitioning.INNER).partitioning is Partitioning.INNER


@pytest.mark.parametrize("partitioning", Partitioning)
def test_directives_for_single_loops_are_read(partitioning: Partitioning) -> None:
    wanted = replace(TILED, also=(Atomic(),), partitioning=partitioning)
    said = tuple(PartitionLoop(each, Partition.NEVER) for each in reversed(whole_loops(wanted)))
    assert with_partitioning_read(replace(TILED, also=(*said, Atomic()))) == wanted


@pytest.mark.parametrize(
    "said",
    [
        (PartitionLoop("y", Partition.NEVER),),
        (PartitionLoop("c", Partition.NEVER), PartitionLoop("y", Partition.ALWAYS)),
    ],
    ids=["one of two", "always"],
)
def test_what_is_none_stays_as_it_is(said: tuple[PartitionLoop, ...]) -> None:
    other = replace(TILED, also=said)
    assert with_partitioning_read(other) == other


def test_single_directives_give_way() -> None:
    said = replace(TILED, also=(Atomic(), PartitionLoop("y", Partition.ALWAYS)))
    assert with_partitioning(said, Partitioning.AUTO) == said
    assert with_partitioning(said, Partitioning.INNER) == replace(
        TILED, also=(Atomic(),), partitioning=Partitioning.INNER
    )


def few(names: PipelineNames, draft: Draft) -> Draft:
    return with_short_code(DraftStructure(draft, names))


def partitioned(draft: Draft) -> dict[str, tuple[Partitioning, ...]]:
    return {name: tuple(each.partitioning for each in func.stages) for name, func in draft.funcs.items()}


def test_only_the_loops_of_vectors_have_parts() -> None:
    names = chain()
    draft = few(names, by_rows(plain_draft(names, first=None)))
    assert partitioned(draft) == {
        "first": (Partitioning.AUTO,),
        "second": (Partitioning.INNER,),
        "output": (Partitioning.INNER,),
    }
    rows = FEATURE_NAMES.index("loops in one part")
    numbers = features_of(DraftStructure(draft, names))
    assert [numbers[name][rows] for name in ("first", "second", "output")] == [0.0, 1.0, 1.0]


def test_what_is_a_thousandth_of_the_work_has_no_parts_and_is_not_unrolled() -> None:
    names = pipeline(
        func("small", (16, 4)),
        func("output", (1024, 1024), read("small", (None, 1), (None, 1))),
    )
    draft = plain_draft(names)
    for name in ("small", "output"):
        unrolled = draft.funcs[name].stages[0].with_kind("x", LoopKind.UNROLLED).with_kind("y", LoopKind.PARALLEL)
        draft = draft.with_func(name, draft.funcs[name].with_stage(0, unrolled))
    made = few(names, draft)
    assert partitioned(made) == {"small": (Partitioning.NONE,), "output": (Partitioning.INNER,)}
    assert made.funcs["small"].stages[0].kinds == {"y": LoopKind.PARALLEL}
    assert made.funcs["output"].stages[0].kinds == draft.funcs["output"].stages[0].kinds


def test_updates_and_what_they_are_computed_in_are_left_to_halide() -> None:
    sums = stage(read("source", ("x", 1), ("y", 8)), loops=(loop("r", 8, "ordered"), loop("x", 64), loop("y", 48)))
    names = pipeline(
        func("source", (64, 56)),
        func("sum", (64, 48), updates=(sums,)),
        func("output", (64, 48), read("sum", ("x", 1), ("y", 1))),
    )
    inner, auto = Partitioning.INNER, Partitioning.AUTO
    at_root = partitioned(few(names, plain_draft(names)))
    assert at_root == {"source": (inner,), "sum": (inner, auto), "output": (inner,)}
    row = LoopLevel("output", names.loops("output", 0)[1].identifier)
    assert partitioned(few(names, plain_draft(names, sum=row)))["output"] == (auto,)


def test_many_small_updates_have_no_parts_either() -> None:
    update = stage(loops=(loop("x", 8), loop("y", 8)))
    large = func("output", (1024, 1024), read("solved", (None, 1), (None, 1)))
    one_loop = stage(loops=(loop("x", 8),))
    names = pipeline(func("solved", (8, 8), updates=(one_loop, *(update,) * 40)), large)
    draft = few(names, plain_draft(names))
    assert {*partitioned(draft)["solved"]} == {Partitioning.NONE}
    check_schedule(schedule_of(draft, names, "f"))


def test_what_is_computed_in_its_loops_counts_as_a_funcs_work() -> None:
    large = replace(
        func("large", (1024, 1024)), stages=(stage(loops=(loop("x", 1024), loop("y", 1024)), operations=90),)
    )
    names = pipeline(
        large,
        func("few", (1, 1024), read("large", (None, 1024), ("y", 1))),
        func("output", (16, 16), read("few", (None, 1), (None, 1024))),
    )
    assert partitioned(few(names, plain_draft(names)))["few"] == (Partitioning.NONE,)
    row = LoopLevel("few", names.loops("few", 0)[1].identifier)
    assert partitioned(few(names, plain_draft(names, large=row)))["few"] == (Partitioning.INNER,)


@pytest.mark.parametrize("name", ["camera_pipeline", "bilateral_grid", "convolution_layer", "scan"])
def test_schedules_with_and_without_parts_come_back(name: str) -> None:
    names = recorded(name)
    for draft in starting_drafts(name):
        made = repair(few(names, draft), names)
        schedule = schedule_of(made, names, name)
        assert schedule_of(draft_of(parse_json(print_json(schedule)), names), names, name) == schedule
        assert partitioned(draft_of(parse_schedule(print_header(schedule, name)), names)) == partitioned(made)
