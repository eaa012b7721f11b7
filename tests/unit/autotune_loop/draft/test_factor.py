"""A reduction that is taken apart: who can be, what becomes of the draft, and that it survives a header."""

from __future__ import annotations

from dataclasses import replace

import pytest

from halide_autotune.autotune_loop.draft.factor import (
    Factoring,
    can_be_factored,
    factored,
    factoring_for,
    is_taken_apart,
    whole_again,
)
from halide_autotune.autotune_loop.draft.from_schedule import draft_of
from halide_autotune.autotune_loop.draft.model import Draft, FuncDraft, StageDraft
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.repair import repair
from halide_autotune.autotune_loop.draft.structure import DraftStructure
from halide_autotune.autotune_loop.draft.to_schedule import schedule_of
from halide_autotune.autotune_loop.schedule.check import check_schedule
from halide_autotune.autotune_loop.schedule.directives import Reorder, RFactor, Split, Vectorize
from halide_autotune.autotune_loop.schedule.model import Intermediate, Wrapper
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.autotune_loop.schedule.print_header import print_header
from halide_autotune.autotune_loop.schedule.values import ROOT, LoopLevel
from halide_autotune.targets.pipeline.shape import FuncShape, LoopShape, PipelineShape, StageShape
from tests.drafted_pipelines import recorded

SUM, LANES = "collected", 8
Sizes = dict[str, int]


def reduction(
    args: dict[str, int], steps: dict[str, int], pure: tuple[str, ...], associative: bool = True
) -> FuncShape:
    """A sum over all `steps` into what its data, or its pure arguments, say."""
    zero = StageShape(tuple(LoopShape(arg, "pure", args[arg]) for arg in args), (), 1, False, False, False)
    loops = [LoopShape(name, "ordered", extent) for name, extent in steps.items()]
    loops += [LoopShape(arg, "pure", args[arg]) for arg in pure]
    update = StageShape(tuple(loops), (), 4, False, True, associative)
    return FuncShape(SUM, tuple(args), tuple(args.values()), True, False, 4, 4, (), (zero, update))


def structure_of(shape: FuncShape) -> DraftStructure:
    names = PipelineNames(PipelineShape(32, (shape,)))
    return DraftStructure(Draft({SUM: plain(names, SUM, ROOT)}), names)


def plain(names: PipelineNames, name: str, compute: LoopLevel) -> FuncDraft:
    count = len(names.shapes[name].stages)
    orders = [tuple(each.identifier for each in names.loops(name, index)) for index in range(count)]
    return FuncDraft(compute, tuple(StageDraft((), order) for order in orders))


PICTURE = {"r$x": 640, "r$y": 480}
TOTAL = reduction({}, PICTURE, ())
HISTOGRAM = reduction({"bin": 256}, PICTURE, ())
MEANS = reduction({"c": 3}, PICTURE, ("c",))
COLUMNS = reduction({"x": 640}, {"r$x": 480}, ("x",))


@pytest.mark.parametrize(
    ("shape", "how"),
    [
        (TOTAL, Factoring(120, 32)),
        (HISTOGRAM, Factoring(120, 1)),
        (MEANS, Factoring(120, 32)),
        (COLUMNS, Factoring(120, 1)),
        (reduction({}, {"r$x": 1000}, ()), Factoring(256, 32)),
        (reduction({}, {"r$x": 4, "r$y": 480}, ()), Factoring(120, 1)),
        (reduction({}, {"r$x": 20, "r$y": 480}, ()), Factoring(120, 16)),
    ],
    ids=["total", "histogram", "means", "columns", "one loop", "short inner loop", "few vectors"],
)
def test_parts_are_strips_in_vectors_where_no_argument_fills_them(shape: FuncShape, how: Factoring) -> None:
    structure = structure_of(shape)
    assert can_be_factored(structure, SUM)
    assert factoring_for(structure, SUM, LANES, parts=4) == how


@pytest.mark.parametrize(
    "shape",
    [
        reduction({}, {"r$x": 5, "r$y": 5}, ()),
        reduction({}, PICTURE, (), associative=False),
        replace(TOTAL, stages=TOTAL.stages[:1]),
        replace(TOTAL, stages=(*TOTAL.stages, TOTAL.stages[1])),
    ],
    ids=["short", "in order", "no reduction", "two updates"],
)
def test_who_cannot_be_taken_apart(shape: FuncShape) -> None:
    assert not can_be_factored(structure_of(shape), SUM)


@pytest.mark.parametrize("shape", [TOTAL, HISTOGRAM, MEANS, COLUMNS], ids=["total", "histogram", "means", "columns"])
def test_it_is_a_schedule_that_survives_a_header(shape: FuncShape) -> None:
    structure = structure_of(shape)
    draft = factored(structure, SUM, factoring_for(structure, SUM, LANES, parts=4), LANES)
    assert not can_be_factored(DraftStructure(draft, structure.names), SUM), "once is enough"
    assert repair(draft, structure.names) == draft
    schedule = schedule_of(draft, structure.names, "f")
    check_schedule(schedule)
    read = parse_schedule(print_header(schedule, "f"))
    assert read == schedule
    assert draft_of(read, structure.names) == draft
    origins = {name: func.origin for name, func in draft.funcs.items()}
    assert origins == {SUM: None, f"{SUM}_part": Intermediate(), f"{SUM}_parts": Wrapper(f"{SUM}_part", ())}


def test_each_part_is_made_by_a_task_and_summed_in_vectors() -> None:
    structure = structure_of(TOTAL)
    draft = factored(structure, SUM, Factoring(120, 32), LANES)
    splits, factoring, *_ = draft.funcs[SUM].frozen
    assert [(each.old, each.factor) for each in splits.directives if isinstance(each, Split)] == [
        ("r_y_as_is", 120),
        ("r_x_as_is", 32),
    ]
    (made,) = factoring.directives
    assert isinstance(made, RFactor) and made.intermediate == f"{SUM}_part" and len(made.preserved) == 2
    lane, part = (variable for _, variable in made.preserved)
    assert draft.funcs[f"{SUM}_part"].compute == LoopLevel(f"{SUM}_parts", part)
    update = draft.funcs[f"{SUM}_part"].frozen[-1].directives
    assert isinstance(update[0], Reorder) and (update[0].variables[0], update[-1]) == (lane, Vectorize(lane))


def test_what_was_computed_in_its_loops_is_so_at_the_root() -> None:
    names = recorded("matrix_product")
    inner = LoopLevel("total", names.loops("total", 1)[0].identifier)
    draft = Draft({name: plain(names, name, inner if name.endswith("_im") else ROOT) for name in names.shapes})
    structure = DraftStructure(draft, names)
    made = factored(structure, "total", Factoring(8, 1), LANES)
    assert {name: func.compute for name, func in made.funcs.items() if name != "total_part"} == {
        **dict.fromkeys(names.shapes, ROOT),
        "total_parts": ROOT,
    }
    assert all(func.store is None for func in made.funcs.values())


def test_it_is_made_whole_again() -> None:
    structure = structure_of(MEANS)
    apart = factored(structure, SUM, Factoring(120, 32), LANES)
    assert is_taken_apart(apart, SUM) and not is_taken_apart(structure.draft, SUM)
    assert whole_again(DraftStructure(apart, structure.names), SUM) == structure.draft
