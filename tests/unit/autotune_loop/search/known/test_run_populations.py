"""What a run knows of a pipeline's schedules when it proposes further ones."""

from __future__ import annotations

import pytest

from halide_autotune.autotune_loop.candidate import Candidate, Origin, SchedulePoint, kernel_symbol
from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.draft.to_schedule import schedule_of
from halide_autotune.autotune_loop.events import Notice, SampleFailed
from halide_autotune.autotune_loop.schedule.as_json import print_json
from halide_autotune.autotune_loop.search.known import run_populations
from halide_autotune.autotune_loop.search.known.run_populations import TimedSchedule
from tests.drafted_pipelines import header_drafts, recorded, starting_drafts
from tests.known_schedules import known as known_schedule
from tests.proposal_setting import NAME, WORK, Make, sampled


def test_no_schedule_of_a_stranger_ends_a_run(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was merged may hold anything that can be parsed."""

    def failing(*arguments: object) -> Draft:
        raise ValueError("'y' is not in list")

    monkeypatch.setattr(run_populations, "draft_of", failing)
    text = print_json(schedule_of(header_drafts(NAME)[0], recorded(NAME), NAME))
    run = make(known=[known_schedule(1.0, text)])
    assert run.proposals.population(WORK, []) is not None and run.heard == []


def test_what_earlier_runs_found_is_told_where_it_is_tried(make: Make) -> None:
    texts = [print_json(schedule_of(draft, recorded(NAME), NAME)) for draft in starting_drafts(NAME)[:6]]
    schedules = [known_schedule(float(number), text) for number, text in enumerate([*texts, *texts], 1)]
    for technique, count in (("sampling,sketches", 4), ("sampling,evolution", 4), ("sampling,pattern", 0)):
        run = make(technique, known=schedules)
        for _ in range(2):
            population = run.proposals.population(WORK, [])
            assert population is not None and len(population.known) == count
        told = [event.text for event in run.heard if isinstance(event, Notice)]
        sentence = "This run starts from the 4 best schedules of earlier ones too; --no-history starts without."
        assert told == ([sentence] if count else [])


def test_what_the_pipeline_is_is_kept_whatever_the_techniques(make: Make) -> None:
    """So that what the run times can go into the history."""
    run = make("sampling,pattern")
    asked: list[int] = []

    def known_of(index: int, shape: object) -> tuple[()]:
        asked.append(index)
        return ()

    run.proposals.known = known_of
    run.proposals.population(WORK, [])
    assert asked == [0]


def test_moves_of_candidates_that_failed_are_told(make: Make) -> None:
    run = make()
    point = SchedulePoint(Origin.EVOLUTION, ("a",), ("tile", "unroll", "tile"))
    symbol = kernel_symbol(NAME, 1, 0, 0)
    run.store.database.add_candidate(Candidate(1, 0, 0, symbol, point, "hash", 0.0))
    run.store.database.add_failure(SampleFailed(1, 0, 0, "build", "failed", "No."), symbol=symbol)
    beside = Candidate(1, 0, 1, kernel_symbol(NAME, 1, 0, 1), point, "other hash", 0.0)
    run.store.database.add_candidate(beside)
    timed = [*sampled(run), TimedSchedule(beside.symbol, beside.sample, 9.0)]
    population = run.proposals.population(WORK, timed)
    assert population is not None
    assert dict(population.failed_moves) == {"tile": 1, "unroll": 1}
    assert [one.time_ms for one in population.tried] == [1.0, 2.0, 3.0] and population.cores == 4


def test_of_many_the_fastest_count_and_some_others_and_what_these_descend_from(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_populations, "_MOST_TRIED", 4)
    run = make()
    (first, *_) = sampled(run)  # all others are the same schedule, which is kept once
    parents_and_times = {"slow": (first.symbol, 35.0), "fast": ("slow", 10.0), "lone": (first.symbol, 11.0)}
    parents_and_times |= {f"child{number}": (first.symbol, 40.0 + number) for number in range(8)}
    timed = [TimedSchedule(first.symbol, first.sample, 30.0)]
    for number, (symbol, (parent, time_ms)) in enumerate(parents_and_times.items()):
        point = SchedulePoint(Origin.EVOLUTION, (parent,), ("tile",))
        run.store.database.add_candidate(Candidate(1, 0, number, symbol, point, f"hash {number}", 0.0))
        timed.append(TimedSchedule(symbol, first.sample, time_ms))
    population = run.proposals.population(WORK, timed)
    assert population is not None
    assert [one.time_ms for one in population.tried] == [10.0, 11.0, 30.0, 35.0, 47.0], "35 is the parent of 10"
    every = run.proposals.population(WORK, timed[:4])
    assert every is not None and len(every.tried) == 4


def test_vectors_of_floats_are_for_targets_that_have_them(make: Make) -> None:
    for target, expected in (("x86-64-linux", True), ("hexagon-32-qurt-hvx_128", False)):
        population = make(halide_target=target).proposals.population(WORK, [])
        assert population is not None and population.names.shape.has_float_vectors is expected
