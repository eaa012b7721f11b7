"""What techniques propose becomes candidates: new ones, with their parents and moves, the same in equal runs."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from halide_autotune.autotune_loop.candidate import (
    Candidate,
    Origin,
    SchedulePoint,
    SearchPoint,
    found_by,
    kernel_symbol,
    technique_of,
)
from halide_autotune.autotune_loop.draft.from_schedule import draft_of
from halide_autotune.autotune_loop.draft.to_schedule import schedule_of
from halide_autotune.autotune_loop.execute.tasks.schedule_tasks import BuildSchedule, DescribePipeline
from halide_autotune.autotune_loop.schedule.as_json import parse_json, print_json
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.autotune_loop.schedule.print_header import print_header
from halide_autotune.autotune_loop.search.batch_builder import mix
from halide_autotune.autotune_loop.search.known.run_populations import TimedSchedule
from halide_autotune.autotune_loop.search.pool import BatchInProgress
from halide_autotune.autotune_loop.search.waiting import NotWantedError
from halide_autotune.autotune_loop.technique_name import TechniqueName
from tests.drafted_pipelines import header_drafts, recorded
from tests.known_schedules import known as known_schedule
from tests.proposal_setting import NAME, WORK, Make, known, points, sampled

_, SKETCHES, EVOLUTION, _, _ = TechniqueName


def test_a_proposal_is_kept_with_its_header_its_parents_and_its_moves(make: Make) -> None:
    run = make()
    timed = sampled(run)
    made = run.propose(WORK, EVOLUTION, timed, known(run), 6, 2)
    assert [one.sample for one in made] == [f"batch_1_0/{place}" for place in range(2, 8)]
    assert [one.symbol for one in made] == [kernel_symbol(NAME, 1, 0, place) for place in range(2, 8)]
    for one, point in zip(made, points(made), strict=True):
        assert point.origin is Origin.EVOLUTION and point.moves
        assert set(point.parents) <= {each.symbol for each in timed} and point.parents
        assert run.store.database.candidate(one.symbol) == one
        schedule = parse_schedule(run.store.schedule_path(run.store.samples / one.sample).read_text())
        assert (
            hashlib.sha256(print_json(replace(schedule, provenance=None)).encode()).hexdigest() == one.schedule_sha256
        )


def test_what_is_known_is_not_proposed_again(make: Make) -> None:
    run = make()
    timed = sampled(run)
    first = run.propose(WORK, SKETCHES, timed, known(run), 5, 0)
    again = run.propose(BatchInProgress(2, 0), SKETCHES, timed, known(run), 40, 0)
    hashes = [one.schedule_sha256 for one in (*first, *again)]
    assert len(first) == 5 and again and len(set(hashes)) == len(hashes)
    assert run.propose(BatchInProgress(3, 0), SKETCHES, timed, known(run), 5, 0) == [], "there are no more"
    children = [
        one
        for round_index in range(2, 5)
        for one in run.propose(BatchInProgress(round_index, 0), EVOLUTION, timed, known(run), 8, 20)
    ]
    assert len({one.schedule_sha256 for one in children}) == len(children) == 24


def test_a_task_starts_from_the_fastest_of_another_one_of_the_run_that_differs_in_sizes_alone(make: Make) -> None:
    run = make()
    other = BatchInProgress(1, 1)
    assert "of another size" not in moves(run.propose(other, SKETCHES, [], set(), 3, 0))
    timed = sampled(run)
    run.propose(WORK, EVOLUTION, timed, known(run), 1, 0)
    first, *others = run.propose(BatchInProgress(2, 1), SKETCHES, [], set(), 3, 0)
    assert moves([first]) == ["of another size"] and "of another size" not in moves(others)
    fastest = min(timed, key=lambda one: one.time_ms)
    path = run.store.schedule_path(run.store.samples / fastest.sample)
    wanted = schedule_of(draft_of(parse_schedule(path.read_text()), recorded(NAME)), recorded(NAME), NAME)
    assert hashlib.sha256(print_json(wanted).encode()).hexdigest() == first.schedule_sha256


def moves(made: list[Candidate]) -> list[str]:
    return [move for point in points(made) for move in point.moves]


def test_what_was_sampled_is_not_proposed_although_its_hash_is_of_features(make: Make) -> None:
    """A sketch that Halide's search has found, too."""
    run = make()
    fresh = run.propose(WORK, SKETCHES, [], set(), 1, 0)
    other = make()
    draft = draft_of(
        parse_schedule(run.store.schedule_path(run.store.samples / fresh[0].sample).read_text()), recorded(NAME)
    )
    folder = other.store.samples / "batch_0_0" / "0"
    folder.mkdir(parents=True)
    other.store.schedule_path(folder).write_text(print_header(schedule_of(draft, recorded(NAME), NAME), NAME))
    timed = [TimedSchedule("found", "batch_0_0/0", 1.0)]
    made = other.propose(WORK, SKETCHES, timed, set(), 30, 0)
    assert made and fresh[0].schedule_sha256 not in {one.schedule_sha256 for one in made}


def test_children_have_children(make: Make) -> None:
    run = make()
    timed = sampled(run, 1)
    made = run.propose(WORK, EVOLUTION, timed, known(run), 3, 0)
    timed += [TimedSchedule(one.symbol, one.sample, 0.5) for one in made]
    next_made = run.propose(BatchInProgress(2, 0), EVOLUTION, timed, known(run), 12, 0)
    assert {one.symbol for one in made} & {parent for point in points(next_made) for parent in point.parents}


@pytest.mark.parametrize("technique", [SKETCHES, EVOLUTION])
def test_equal_seeds_propose_alike(make: Make, technique: TechniqueName) -> None:
    def proposed(seed: int, work: BatchInProgress = WORK) -> list[tuple[object, ...]]:
        run = make(seed=seed)
        made = run.propose(work, technique, sampled(run), known(run), 6, 0)
        return [(point, one.schedule_sha256) for point, one in zip(points(made), made, strict=True)]

    assert proposed(1) == proposed(1)
    if technique is EVOLUTION:
        assert proposed(1) != proposed(2) and proposed(1) != proposed(1, BatchInProgress(2, 0))


@pytest.mark.parametrize(("kept", "origin"), [("own", Origin.OWN_SCHEDULE), ("incumbent", Origin.INCUMBENT)])
def test_what_is_in_use_is_the_first_sketch(make: Make, kept: str, origin: Origin) -> None:
    run = make()
    own = header_drafts(NAME)[0]
    run.store.keep_header(kept, 0, print_header(schedule_of(own, recorded(NAME), NAME), NAME))
    (first,) = run.propose(BatchInProgress(0, 0), SKETCHES, [], set(), 1, 0)
    assert first.point == SchedulePoint(origin, (), (origin.value,))
    assert technique_of(first.point) == SKETCHES
    text = run.store.schedule_path(run.store.samples / first.sample).read_text()
    assert draft_of(parse_schedule(text), recorded(NAME)) == own
    assert all(
        point.moves != (origin.value,)
        for point in points(run.propose(BatchInProgress(0, 1), SKETCHES, [], set(), 3, 1))
    )


def test_what_earlier_runs_found_comes_before_sketches(make: Make) -> None:
    drafts = header_drafts(NAME)[:2]
    texts = [print_json(schedule_of(draft, recorded(NAME), NAME)) for draft in drafts]
    foreign = print_json(schedule_of(header_drafts("separable_filter")[0], recorded("separable_filter"), "other"))
    run = make(known=[known_schedule(1.0, text) for text in ("damaged", foreign, *texts)])
    first, second, third = run.propose(BatchInProgress(0, 0), SKETCHES, [], set(), 3, 0)
    assert first.point == second.point == SchedulePoint(Origin.HISTORY, (), ("history",))
    assert found_by(first.point) == "history" and technique_of(first.point) == SKETCHES
    headers = [run.store.schedule_path(run.store.samples / one.sample).read_text() for one in (first, second)]
    assert [draft_of(parse_schedule(text), recorded(NAME)) for text in headers] == [*drafts]
    assert third.point.origin is Origin.SKETCH
    # Evolution starts from them, too, before anything is timed.
    children = run.propose(BatchInProgress(0, 1), EVOLUTION, [], set(), 3, 0)
    assert len(children) == 3


def test_a_schedule_that_cannot_be_read_is_no_parent(make: Make) -> None:
    run = make()
    timed = sampled(run)
    run.store.schedule_path(run.store.samples / timed[0].sample).write_text("damaged")
    run.store.schedule_path(run.store.samples / timed[1].sample).unlink()
    made = run.propose(WORK, EVOLUTION, timed, known(run), 6, 0)
    assert len(made) == 6 and {parent for point in points(made) for parent in point.parents} == {timed[2].symbol}


def test_once_no_batch_is_wanted_what_a_resumed_run_has_timed_is_read_no_further(make: Make) -> None:
    run = make()
    timed = sampled(run)
    run.proposals.stop.set()
    with pytest.raises(NotWantedError):
        run.proposals.population(WORK, timed)


def test_once_no_batch_is_wanted_nothing_is_proposed(make: Make) -> None:
    run = make()
    population = run.proposals.population(WORK, sampled(run))
    assert population is not None
    run.proposals.stop.set()
    with pytest.raises(NotWantedError):
        run.proposals.propose(WORK, EVOLUTION, population, known(run), 6, 0)


def test_what_is_built_is_the_schedule_within_a_few_times_what_others_took(make: Make) -> None:
    run = make(script=lambda task: recorded(NAME).shape if isinstance(task, DescribePipeline) else task)
    made = run.propose(WORK, EVOLUTION, sampled(run), known(run), 2, 0)
    limits = []
    for index, build_s in enumerate((None, 0.1, 0.2, 0.3, 30.0, 30.0, 30.0, 30.0)):
        if build_s is not None:
            run.store.database.add_build(f"f_r0_a0_s{index}", build_s, 1)
            run.store.database.add_build(f"g_r0_a1_s{index}", 100 * build_s, 1)
        task = cast(Any, run.proposals.submit(made[1]).result())
        assert isinstance(task, BuildSchedule) and task.symbol == made[1].symbol
        assert task.output_folder == run.store.objects / made[1].symbol
        header = run.store.schedule_path(run.store.samples / made[1].sample).read_text()
        assert parse_json(task.schedule_json) == parse_schedule(header)
        limits.append(task.limit_s)
    assert limits[:3] == [30.0, 30.0, 30.0], "of the first, as long as a search"
    assert limits[3:] == [5.0, 5.0, 5.0, 75.0, 75.0], "and never less than five seconds"


def test_a_batch_that_is_cut_short_has_some_of_each_technique() -> None:
    def candidate(index: int, origin: Origin) -> Candidate:
        is_sampled = origin is Origin.RANDOM
        point = SearchPoint(origin, 1, 32, 80, Path("a.weights")) if is_sampled else SchedulePoint(origin)
        return Candidate(1, 0, index, f"s{index}", point, "", 0.0)

    origins = [Origin.RANDOM] * 3 + [Origin.OWN_SCHEDULE] + [Origin.SKETCH] + [Origin.EVOLUTION] * 4
    chosen = [candidate(index, origin) for index, origin in enumerate(origins)]
    assert [one.sample_index for one in mix(chosen)] == [0, 3, 5, 1, 4, 6, 2, 7, 8]
    assert mix([]) == []
