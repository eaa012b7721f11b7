"""What a loop needs of a Func whose readers are computed further in: all of the readers' iterations count."""

from __future__ import annotations

import pytest

from halide_autotune.autotune_loop.draft.model import Draft, FuncDraft, LoopKind, StageDraft
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.structure import DraftStructure, Site
from halide_autotune.autotune_loop.schedule.directives import Split
from halide_autotune.autotune_loop.schedule.values import ROOT, LoopLevel
from halide_autotune.targets.pipeline.shape import (
    FuncShape,
    LoopShape,
    PipelineShape,
    ReadDimension,
    ReadShape,
    StageShape,
)

ROW, STRIP = LoopLevel("out", "yi"), LoopLevel("out", "yo")


def func(name: str, extent: int, reads: tuple[ReadShape, ...]) -> FuncShape:
    loops = (LoopShape("x", "pure", extent), LoopShape("y", "pure", extent))
    stage = StageShape(loops, reads, 9, has_floats=False, reads_itself=False, is_associative=False)
    return FuncShape(name, ("x", "y"), (extent, extent), name == "out", False, 4, 4, (), (stage,))


def window(name: str) -> ReadShape:
    """Three by three points."""
    return ReadShape(name, False, 9, (ReadDimension({"x": 192}, 3), ReadDimension({"y": 192}, 3)))


@pytest.fixture
def names() -> PipelineNames:
    shapes = (func("first", 68, ()), func("second", 66, (window("first"),)), func("out", 64, (window("second"),)))
    return PipelineNames(PipelineShape(32, shapes))


def sliding(first_at: LoopLevel) -> Draft:
    """Strips of 16 rows; the second Func's window slides within one."""
    plain = StageDraft((), ("x", "y"))
    strips = StageDraft((Split("y", "yo", "yi", 16),), ("x", "yi", "yo"), {"yo": LoopKind.PARALLEL})
    return Draft(
        {
            "first": FuncDraft(first_at, (plain,)),
            "second": FuncDraft(ROW, (plain,), store=STRIP),
            "out": FuncDraft(ROOT, (strips,)),
        }
    )


def test_a_strip_needs_what_all_its_rows_need(names: PipelineNames) -> None:
    structure = DraftStructure(sliding(STRIP), names)
    assert structure.region_at("first", ROW) == (68, 5)
    assert structure.region_at("first", STRIP) == (68, 20)
    assert structure.region("second") == (66, 3)


def test_an_extent_is_constant_only_if_all_between_is(names: PipelineNames) -> None:
    in_rows = DraftStructure(sliding(ROW), names)
    assert in_rows.is_constant(Site("first", 0), "y")
    assert not in_rows.is_constant(Site("first", 0), "x")
    at_root = DraftStructure(sliding(ROOT), names)
    assert not at_root.is_constant(Site("first", 0), "y")


def test_readers_at_fixed_places_want_different_ones() -> None:
    def at_one_place(name: str) -> ReadShape:
        return ReadShape(name, False, 1, (ReadDimension({"x": 192}, 1), ReadDimension({}, 1)))

    readers = [func(name, 64, (at_one_place("planes"),)) for name in ("red", "green")]
    out = func("out", 64, tuple(ReadShape(each.name, False, 1, window("").dimensions) for each in readers))
    names = PipelineNames(PipelineShape(32, (func("planes", 66, ()), *readers, out)))
    plain = StageDraft((), ("x", "y"))
    funcs = {name: FuncDraft(None, (plain,)) for name in ("planes", "red", "green")}
    structure = DraftStructure(Draft({**funcs, "out": FuncDraft(ROOT, (plain,))}), names)
    assert structure.region_at("planes", LoopLevel("out", "y"))[1] == 2
