"""Where Halide's vectors are wrong, others are proposed: what is known is edited at once, the rest is learnt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from halide_autotune.autotune_loop.candidate import (
    Candidate,
    Origin,
    SearchedSchedule,
    SearchPoint,
    found_by,
    technique_of,
)
from halide_autotune.autotune_loop.draft.from_schedule import draft_of
from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.draft.to_schedule import schedule_of
from halide_autotune.autotune_loop.events import SampleFailed
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.autotune_loop.schedule.print_header import print_header
from halide_autotune.autotune_loop.search.pool import BatchInProgress
from halide_autotune.autotune_loop.technique_name import TechniqueName
from halide_autotune.targets.pipeline.shape import PipelineShape
from tests.drafted_pipelines import for_target, header_drafts, recorded, with_vectors
from tests.proposal_setting import NAME, WORK, Make, Setting, known, points, sampled

_, SKETCHES, EVOLUTION, _, _ = TechniqueName
FUNC = recorded(NAME).funcs["output"]
WITHOUT = "loops for vectors that fail"


def fail(run: Setting, symbol: str, stage: str, reason: str) -> None:
    run.store.database.add_failure(SampleFailed(0, 0, 0, stage, reason, "No."), symbol=symbol)


def proposed(run: Setting, sample: str) -> Draft:
    return drafted(run.store.schedule_path(run.store.samples / sample).read_text())


def drafted(header: str) -> Draft:
    return draft_of(parse_schedule(header), recorded(NAME))


@pytest.mark.parametrize(
    ("stage", "reason", "counts"),
    [
        ("measure", "wrong output", True),
        ("measure", "crashed", True),
        ("build", "failed", True),
        ("build", "invalid schedule", False),
        ("measure", "timed out", False),
    ],
)
def test_only_some_failures_may_be_faults_of_vectors(make: Make, stage: str, reason: str, counts: bool) -> None:
    run = make()
    *timed, failed = sampled(run)
    fail(run, failed.symbol, stage, reason)
    population = run.proposals.population(WORK, timed)
    assert population is not None
    assert [one.symbol for one in population.failed] == ([failed.symbol] if counts else [])
    assert not any(one.has_children for one in population.failed)


def test_what_has_failed_all_the_time_is_proposed_without_its_vectors(make: Make) -> None:
    run = make()
    failed = sampled(run, 6)
    for one in failed:
        fail(run, one.symbol, "measure", "wrong output")
    assert with_vectors(proposed(run, failed[0].sample))
    none_is_over = run.propose(WORK, SKETCHES, [], known(run), 3, 0)
    assert all(WITHOUT not in found(one) for one in none_is_over), "the first batch is being timed"
    third = BatchInProgress(2, 0)
    sketches = run.propose(third, SKETCHES, [], known(run), 3, 0)
    assert sketches and all(found(one)[-1] == WITHOUT for one in sketches)
    again = run.propose(third, EVOLUTION, [], known(run), 6, 3)
    parents = {point.parents[0]: one for one, point in zip(again, points(again), strict=True) if point.parents}
    assert parents and len({one.schedule_sha256 for one in again}) == len(again)
    samples = {each.symbol: each.sample for each in failed}
    for parent, child in parents.items():
        assert with_vectors(proposed(run, child.sample)) < with_vectors(proposed(run, samples[parent]))
    population = run.proposals.population(BatchInProgress(3, 0), [])
    assert population is not None
    assert {one.symbol for one in population.failed if one.has_children} == {*parents}


def found(candidate: Candidate) -> tuple[str, ...]:
    """What is told of how a schedule was made."""
    (point,) = points([candidate])
    return point.moves


def wrong_in_vectors(func: str) -> PipelineShape:
    """The pipeline as RISC-V may have it."""
    return for_target(recorded(NAME), func, is_wrong_in_vectors=True, is_wrong_if_inlined=True).shape


def searched(run: Setting, draft: Draft) -> SearchedSchedule:
    folder = run.store.work / "search" / "1_0_0"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{NAME}.schedule.h"
    path.write_text(print_header(schedule_of(draft, recorded(NAME), NAME), NAME))
    point = SearchPoint(Origin.RANDOM, 1, 1, 5, run.store.default_weights)
    return SearchedSchedule(point, folder, folder / "features", "features", 0.25, schedule_path=path)


def test_samples_are_edited_where_the_target_gets_their_vectors_wrong(make: Make) -> None:
    run = make(script=lambda task: wrong_in_vectors("output"))
    edit = run.edits(WORK, [])
    assert edit is not None and TechniqueName.SAMPLING in run.proposals.techniques(0)
    sample = searched(run, next(draft for draft in header_drafts(NAME) if FUNC in with_vectors(draft)))
    edited = edit(sample)
    assert edited is not None and FUNC not in with_vectors(edited)
    (kept,) = run.proposals.keep_edited(WORK, edited, sample, 4)
    assert kept.search_s == 0.25 and kept.sample_index == 4 and not kept.has_features
    assert technique_of(kept.point) == found_by(kept.point) == TechniqueName.SAMPLING
    assert run.store.database.candidate(kept.symbol) == kept
    assert proposed(run, kept.sample) == edited
    assert run.proposals.keep_edited(WORK, edited, sample, 5) == [], "it is known now"


def test_samples_are_edited_by_what_was_learnt_where_vectors_are_doubtful(make: Make) -> None:
    assert make().edits(WORK, []) is None, "on x86-64 samples stay as they are, for the cost model"
    run = make(halide_target="hexagon-32-noos-hvx-hvx_128-hvx_v66")
    assert run.edits(WORK, []) is None, "nothing has failed yet"
    sample = searched(run, next(draft for draft in header_drafts(NAME) if FUNC in with_vectors(draft)))
    for one in sampled(run, 6):
        fail(run, one.symbol, "measure", "wrong output")
    edit = run.edits(BatchInProgress(2, 0), [])
    assert edit is not None
    edited = edit(sample)
    assert edited is not None and with_vectors(edited) < with_vectors(proposed_of(sample))


def proposed_of(sample: SearchedSchedule) -> Draft:
    assert sample.schedule_path is not None
    return drafted(sample.schedule_path.read_text())


def test_samples_without_such_vectors_stay_as_they_are(make: Make) -> None:
    run = make(script=lambda task: wrong_in_vectors("output"))
    edit = run.edits(WORK, [])
    assert edit is not None
    draft = next(draft for draft in header_drafts(NAME) if FUNC in with_vectors(draft))
    func = draft.funcs[FUNC]
    stage = replace(func.stages[0], kinds={})
    assert edit(searched(run, draft.with_func(FUNC, func.with_stage(0, stage)))) is None
    damaged = searched(run, draft)
    assert damaged.schedule_path is not None
    damaged.schedule_path.write_text("damaged")
    assert edit(damaged) is None
    assert make("sampling", script=lambda task: wrong_in_vectors("output")).edits(WORK, []) is None
