"""A schedule's numbers say where each Func is computed, how much of it at once and how its loops run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from halide_autotune.autotune_loop.draft.features import ABSENT, FEATURE_NAMES, features_of
from halide_autotune.autotune_loop.draft.model import Draft, FuncDraft, LoopKind
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.structure import DraftStructure
from halide_autotune.autotune_loop.schedule.directives import Split, StoreIn, Unroll, Vectorize
from halide_autotune.autotune_loop.schedule.model import StageSchedule, Wrapper
from halide_autotune.autotune_loop.schedule.values import LoopLevel, MemoryType
from tests.drafted_pipelines import RECORDED, chain, plain_draft, recorded, starting_drafts, with_split


def numbers(draft: Draft, names: PipelineNames, func: str) -> dict[str, float]:
    return dict(zip(FEATURE_NAMES, features_of(DraftStructure(draft, names))[func], strict=True))


@pytest.mark.parametrize("name", RECORDED)
def test_every_func_of_every_schedule_has_them(name: str) -> None:
    for draft in starting_drafts(name):
        features = features_of(DraftStructure(draft, recorded(name)))
        assert features.keys() == draft.funcs.keys()
        assert {len(each) for each in features.values()} == {len(FEATURE_NAMES), len(ABSENT)}
        assert ABSENT not in features.values()


@pytest.mark.parametrize("name", RECORDED)
def test_schedules_that_differ_mostly_have_other_numbers(name: str) -> None:
    drafts = starting_drafts(name)
    different = {tuple(sorted(features_of(DraftStructure(draft, recorded(name))).items())) for draft in drafts}
    assert len(different) >= 0.8 * len(drafts)


def test_places_and_sizes() -> None:
    names = chain()
    at_root = numbers(plain_draft(names), names, "first")
    assert (at_root["at root"], at_root["times computed"]) == (1.0, 0.0)
    assert at_root["points"] == at_root["points stored"] == pytest.approx(6.044 + 5.087, abs=1e-3)
    assert (at_root["extent 0"], at_root["extent 1"]) == pytest.approx((6.044, 5.087), abs=1e-3)
    in_rows = numbers(plain_draft(names, first=LoopLevel("second", "y")), names, "first")
    assert (in_rows["at root"], in_rows["times computed"]) == (0.0, 5.0), "once in each of 32 rows"
    assert in_rows["extent 1"] == pytest.approx(1.585, abs=1e-3), "three rows"
    assert in_rows["work"] > at_root["work"] + 1, "of three rows two were computed before"


def test_what_is_inlined_has_nothing_else() -> None:
    names = chain()
    inlined = numbers(plain_draft(names, first=None), names, "first")
    assert inlined["how it is scheduled"] and sum(inlined.values()) == inlined["how it is scheduled"]


def test_loops_come_from_the_inside() -> None:
    names, draft = chain(), plain_draft(chain())
    plain = draft.funcs["output"].stages[0]
    fast = with_split(plain, "x", 8, LoopKind.VECTORIZED).with_kind("y", LoopKind.PARALLEL)
    found = numbers(draft.with_func("output", draft.funcs["output"].with_stage(0, fast)), names, "output")
    assert (found["vectorized"], found["parallel"], found["unrolled"]) == (3.0, 5.0, 0.0)
    innermost = [found[f"{what} of loop 0"] for what in ("extent", "kind", "dimension")]
    outermost = [found[f"{what} of loop 2"] for what in ("extent", "kind", "dimension")]
    assert innermost == [3.0, 2.0, 0.0] and outermost == [5.0, -1.0, 1.0]
    assert found["extent of loop 3"] == 0.0


def test_a_producer_in_a_task_and_what_is_stored_further_out() -> None:
    names = chain()
    draft = plain_draft(names, second=LoopLevel("output", "x"))
    stored = replace(draft.funcs["second"], store=LoopLevel("output", "y"), storage=(StoreIn(MemoryType.STACK),))
    rows = draft.funcs["output"].with_stage(0, draft.funcs["output"].stages[0].with_kind("y", LoopKind.PARALLEL))
    found = numbers(draft.with_func("second", stored).with_func("output", rows), names, "second")
    assert found["in a task"] == 1.0 and found["points stored"] > found["points"]
    assert (found["storage directives"], found["memory is chosen"]) == (1.0, 1.0)


def test_what_is_kept_as_it_is_is_told_by_its_directives() -> None:
    names = chain()
    stage = StageSchedule("first", None, (Split("x", "xo", "xi", 16), Vectorize("xi"), Unroll("xo")))
    frozen = FuncDraft(None, (), origin=Wrapper("first", ("second",)), frozen=(stage,))
    found = numbers(plain_draft(names).with_func("copy", frozen), names, "copy")
    told = [found[f"{what} as is"] for what in ("factor 0", "vectors", "unrolled", "tasks")]
    assert told == [4.0, 1.0, 1.0, 0.0]
