"""What techniques propose becomes candidates: new ones, with their parents and moves, the same in equal runs."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from halide_autotune.autotune_loop.candidate import (
    Candidate,
    Origin,
    SchedulePoint,
    SearchPoint,
    kernel_symbol,
    technique_of,
)
from halide_autotune.autotune_loop.draft.from_schedule import draft_of
from halide_autotune.autotune_loop.draft.to_schedule import schedule_of
from halide_autotune.autotune_loop.events import Event, Notice, SampleFailed
from halide_autotune.autotune_loop.execute.tasks.schedule_tasks import BuildSchedule, DescribePipeline
from halide_autotune.autotune_loop.execute.tasks.task import Task
from halide_autotune.autotune_loop.schedule.as_json import parse_json, print_json
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.autotune_loop.schedule.print_header import print_header
from halide_autotune.autotune_loop.search.batch_builder import mix
from halide_autotune.autotune_loop.search.pool import BatchInProgress
from halide_autotune.autotune_loop.search.schedule_proposals import ScheduleProposals, TimedSchedule
from halide_autotune.autotune_loop.search.techniques import registry
from halide_autotune.autotune_loop.search.techniques.evolution import Evolution
from halide_autotune.autotune_loop.search.techniques.technique import Population, Proposal
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.autotune_loop.technique_name import TechniqueName
from halide_autotune.devices.device import Clock
from halide_autotune.devices.timing.measurement import Measurement
from halide_autotune.targets.errors import ToolchainError
from halide_autotune.targets.generator.run import GeneratorFailure, GeneratorFailureReason
from tests.drafted_pipelines import header_drafts, recorded, starting_drafts
from tests.run_specs import make_record, make_spec, make_task
from tests.scripted_executor import ScriptedExecutor

NAME = "separable_filter"
SAMPLING, SKETCHES, EVOLUTION, ANNEALING, PATTERN = TechniqueName
WORK = BatchInProgress(1, 0)


@dataclass
class Setting:
    """Proposals of a run whose executor says what its script says."""

    proposals: ScheduleProposals
    store: RunStore
    asked: list[Task[Any]]
    heard: list[Event]


Make = Callable[..., Setting]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes a run's proposals; each run has a folder of its own."""
    with contextlib.ExitStack() as opened:

        def setting(
            technique: str = "sampling,sketches,evolution",
            script: Callable[[Task[Any]], object] | None = None,
            gpu: object = None,
            space: object = None,
            halide_target: str = "x86-64-linux",
            seed: int = 3,
            budget_s: float | None = None,
        ) -> Setting:
            folder = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
            store = RunStore(folder, make_record(make_spec(make_task(NAME))), resume=False)
            opened.callback(store.close)
            asked: list[Task[Any]] = []

            def answer(task: Task[Any]) -> object:
                asked.append(task)
                return script(task) if script is not None else recorded(NAME).shape

            context = SimpleNamespace(
                spec=SimpleNamespace(options=RunOptions.of(technique=technique.split(","), seed=seed)),
                profile=SimpleNamespace(machine=SimpleNamespace(gpu=gpu), halide_target=halide_target),
                tasks=[SimpleNamespace(function_name=NAME, parameters={}, space=space)] * 2,
                workspace=SimpleNamespace(work_folder=store.work),
                limits=SimpleNamespace(search_s=20.0, budget_s=budget_s),
                parallelism=4,
                sample_file_name=NAME,
                devices=(),
            )
            executor = opened.enter_context(contextlib.closing(ScriptedExecutor(answer)))
            heard: list[Event] = []
            return Setting(ScheduleProposals(executor, store, cast(Any, context), heard.append), store, asked, heard)

        yield setting


def sampled(run: Setting, count: int = 3) -> list[TimedSchedule]:
    """Schedules of Halide's that were timed in the first round."""
    found = []
    for index, draft in enumerate(starting_drafts(NAME)[:count]):
        symbol = kernel_symbol(NAME, 0, 0, index)
        point = SearchPoint(Origin.RANDOM, index, 1, 5, run.store.default_weights)
        candidate = Candidate(0, 0, index, symbol, point, f"features {index}", 0.5)
        run.store.database.add_candidate(candidate)
        folder = run.store.samples / candidate.sample
        folder.mkdir(parents=True)
        run.store.schedule_path(folder).write_text(print_header(schedule_of(draft, recorded(NAME), NAME), NAME))
        found.append(TimedSchedule(symbol, candidate.sample, 1.0 + index))
    return found


def known(run: Setting) -> set[str]:
    return run.store.database.known_schedules(0)


def points(candidates: list[Candidate]) -> list[SchedulePoint]:
    assert all(isinstance(one.point, SchedulePoint) for one in candidates)
    return [one.point for one in candidates if isinstance(one.point, SchedulePoint)]


# Which techniques


def test_techniques_that_were_asked_for_are_used_with_evolution_last(make: Make) -> None:
    assert make("evolution,sampling,sketches").proposals.techniques(0) == (SAMPLING, SKETCHES, EVOLUTION)
    asked = make("evolution,pattern,annealing,sketches").proposals
    assert asked.techniques(0) == (SKETCHES, ANNEALING, PATTERN, EVOLUTION)


@pytest.mark.parametrize("left", [{"gpu": object()}, {"space": object()}, {"technique": "sampling"}])
def test_gpus_and_tuned_parameters_are_left_to_sampling_and_nothing_is_described(
    make: Make, left: dict[str, Any]
) -> None:
    run = make(**left)
    assert run.proposals.techniques(0) == (SAMPLING,)
    assert run.proposals.divide(WORK, sampled(run), 8) == {SAMPLING: 8}
    assert run.asked == []


def test_a_pipeline_is_described_once(make: Make) -> None:
    run = make()
    for _ in range(3):
        run.proposals.techniques(0)
    assert [type(task) for task in run.asked] == [DescribePipeline]
    run.proposals.techniques(1)
    assert [cast(DescribePipeline, task).task_index for task in run.asked] == [0, 1]


@pytest.mark.parametrize(
    "failure",
    [
        GeneratorFailure(GeneratorFailureReason.CRASHED, "It has crashed.", "a long log", 0.1),
        ToolchainError("It has crashed.", next_step="Install it."),
    ],
)
def test_a_pipeline_that_cannot_be_described_is_left_to_sampling_which_is_told_once(
    make: Make, failure: object
) -> None:
    run = make(script=lambda task: failure)
    for _ in range(3):
        assert run.proposals.techniques(0) == (SAMPLING,)
    assert run.proposals.propose(WORK, EVOLUTION, sampled(run), (), 4, 0) == []
    (notice,) = run.heard
    assert isinstance(notice, Notice) and notice.warning
    assert notice.text.endswith("cannot be described: It has crashed."), "a sentence, and no record"


class Faulty:
    """Somebody's technique, which fails after its second proposal."""

    def propose(self, population: Population, count: int, source: Random) -> Iterator[Proposal]:
        yield from list(Evolution().propose(population, count, source))[:2]
        raise ValueError("no such\nloop")


def test_a_packages_technique_that_fails_is_told_and_not_asked_again(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        registry, "_plug_in", lambda name: registry.PlugInTechnique(Faulty(), f"The technique {name!r}")
    )
    run = make("evolution,faulty,sampling")
    assert run.proposals.techniques(0) == (SAMPLING, "faulty", EVOLUTION)
    made = run.proposals.propose(WORK, "faulty", sampled(run), known(run), 6, 0)
    assert [(one.point.origin, technique_of(one.point)) for one in made] == [(Origin.PLUG_IN, "faulty")] * 2
    assert run.store.database.candidates(0)[-1].point == made[-1].point, "it is read as it was written"
    assert [event.text for event in run.heard if isinstance(event, Notice)] == [
        "The technique 'faulty' failed, and is not asked again in this run: ValueError: no such loop"
    ]
    assert run.proposals.techniques(0) == (SAMPLING, EVOLUTION)
    alone = make("faulty")
    assert len(alone.proposals.propose(WORK, "faulty", sampled(alone), known(alone), 6, 0)) == 2
    assert alone.proposals.techniques(0) == (SAMPLING,), "a run goes on"


class Curious:
    """Somebody's technique, which keeps what it is given."""

    def __init__(self) -> None:
        self.given: list[Population] = []

    def propose(self, population: Population, count: int, source: Random) -> Iterator[Proposal]:
        self.given.append(population)
        return iter(())


def test_techniques_hear_where_the_time_of_the_fastest_goes(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    curious = Curious()
    monkeypatch.setattr(registry, "_plug_in", lambda name: registry.PlugInTechnique(curious, name))
    run = make("sampling,curious")
    tried = sampled(run)

    def busy() -> dict[str, float]:
        run.proposals.propose(WORK, "curious", tried, known(run), 4, 0)
        return {**curious.given[-1].busy}

    assert busy() == {}
    # Halide's own work is a row, too; of the fastest itself nothing is known.
    shares = {"waiting for parallel tasks to finish": 0.5, "output": 0.375, "columns": 0.125}
    run.store.database.add_func_shares(tried[2].symbol, {"output": 1.0})
    run.store.database.add_func_shares(tried[1].symbol, shares)
    run.store.database.add_func_shares(tried[0].symbol, {})
    assert busy() == {"output": 0.75, "columns": 0.25}


# How many


def test_the_first_round_is_half_sampled_and_half_sketches(make: Make) -> None:
    run = make()
    assert run.proposals.divide(BatchInProgress(0, 0), [], 9) == {SAMPLING: 4, SKETCHES: 5}
    assert run.proposals.divide(WORK, [], 8) == {SAMPLING: 2, SKETCHES: 6}, "nothing was timed"
    assert make("sketches,evolution").proposals.divide(BatchInProgress(0, 0), [], 8)[SKETCHES] == 8


def test_where_no_search_succeeds_the_first_round_is_sketches(make: Make) -> None:
    proposals = make().proposals
    proposals.leave_out_search(0)
    assert proposals.techniques(0) == (SKETCHES, EVOLUTION)
    assert proposals.divide(WORK, [], 8) == {SAMPLING: 0, SKETCHES: 8}


def test_sketches_that_were_not_asked_for_are_not_made(make: Make) -> None:
    assert make("sampling,evolution").proposals.divide(BatchInProgress(0, 0), [], 8) == {SAMPLING: 4, EVOLUTION: 4}
    assert make("evolution").proposals.divide(BatchInProgress(0, 0), [], 8) == {EVOLUTION: 8}


@pytest.mark.parametrize(
    ("reference_s", "expected", "first"),
    # The last two take 8 % and a fifth of the budget, or are as small as they may be.
    [(0.2, 25, 25), (4.0, 8, 16), (0.01, 29, 29), (9.0, 4, 12), (99.0, 4, 6)],
)
def test_batches_are_small_enough_for_many_generations_in_the_budget(
    make: Make, reference_s: float, expected: int, first: int
) -> None:
    """600 s for each task's 20 batches are 30 s each; nothing was built yet, so a build is taken for 1 s."""
    run = make(budget_s=1200.0)
    assert run.proposals.batch_size(0, 32, is_first=True) == 32, "nothing is known"
    reference = Measurement("reference", "board", Clock.WALL, (0.01,), "precision", False)
    run.store.database.add_measurement(reference, "reference", reference_s)
    assert run.proposals.batch_size(0, 32, is_first=False) == expected
    assert run.proposals.batch_size(0, 32, is_first=True) == first
    assert make().proposals.batch_size(0, 32, is_first=False) == 32, "without a budget there is time"


def test_later_all_have_their_share(make: Make) -> None:
    run = make()
    shares = run.proposals.divide(WORK, sampled(run, 12), 12)
    assert list(shares) == [SAMPLING, SKETCHES, EVOLUTION] and sum(shares.values()) == 12
    assert all(shares.values())


def test_shares_follow_what_was_timed_and_what_failed(make: Make) -> None:
    run = make()
    timed = sampled(run)
    for index in range(30):
        good = index % 2 == 0
        origin = Origin.EVOLUTION if good else Origin.SKETCH
        symbol = kernel_symbol(NAME, 1, 0, index)
        run.store.database.add_candidate(Candidate(1, 0, index, symbol, SchedulePoint(origin), symbol, 0.0))
        if good:
            timed.append(TimedSchedule(symbol, f"batch_1_0/{index}", 1.0 / (index + 1)))
        else:
            failed = SampleFailed(1, 0, index, "build", "failed", "It does not compile.")
            run.store.database.add_failure(failed, symbol=symbol)
    shares = run.proposals.divide(WORK, timed, 12)
    assert shares[EVOLUTION] > 6 > shares[SKETCHES]


def test_what_is_being_timed_meanwhile_is_left_out_as_that_differs_between_equal_runs(make: Make) -> None:
    run = make()
    timed = sampled(run)
    before = run.proposals.divide(BatchInProgress(2, 0), timed, 12), run.proposals._population(0, timed)
    for index in range(8):
        symbol = kernel_symbol(NAME, 1, 0, index)
        point = SchedulePoint(Origin.EVOLUTION, (), ("tile",))
        run.store.database.add_candidate(Candidate(1, 0, index, symbol, point, symbol, 0.0))
        if index % 2:
            measurement = Measurement(symbol, "board", Clock.WALL, (0.0001,), "time", True)
            run.store.database.add_measurement(measurement, "sample", 0.1)
        else:
            run.store.database.add_failure(SampleFailed(1, 0, index, "measure", "crashed", "No."), symbol=symbol)
    assert (run.proposals.divide(BatchInProgress(2, 0), timed, 12), run.proposals._population(0, timed)) == before


# Which


def test_a_proposal_is_kept_with_its_header_its_parents_and_its_moves(make: Make) -> None:
    run = make()
    timed = sampled(run)
    made = run.proposals.propose(WORK, EVOLUTION, timed, known(run), 6, 2)
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
    first = run.proposals.propose(WORK, SKETCHES, timed, known(run), 5, 0)
    again = run.proposals.propose(BatchInProgress(2, 0), SKETCHES, timed, known(run), 40, 0)
    hashes = [one.schedule_sha256 for one in (*first, *again)]
    assert len(first) == 5 and again and len(set(hashes)) == len(hashes)
    assert run.proposals.propose(BatchInProgress(3, 0), SKETCHES, timed, known(run), 5, 0) == [], "there are no more"
    children = [
        one
        for round_index in range(2, 5)
        for one in run.proposals.propose(BatchInProgress(round_index, 0), EVOLUTION, timed, known(run), 8, 20)
    ]
    assert len({one.schedule_sha256 for one in children}) == len(children) == 24


def test_what_was_sampled_is_not_proposed_although_its_hash_is_of_features(make: Make) -> None:
    """A sketch that Halide's search has found, too."""
    run = make()
    fresh = run.proposals.propose(WORK, SKETCHES, [], set(), 1, 0)
    other = make()
    draft = draft_of(
        parse_schedule(run.store.schedule_path(run.store.samples / fresh[0].sample).read_text()), recorded(NAME)
    )
    folder = other.store.samples / "batch_0_0" / "0"
    folder.mkdir(parents=True)
    other.store.schedule_path(folder).write_text(print_header(schedule_of(draft, recorded(NAME), NAME), NAME))
    timed = [TimedSchedule("found", "batch_0_0/0", 1.0)]
    made = other.proposals.propose(WORK, SKETCHES, timed, set(), 30, 0)
    assert made and fresh[0].schedule_sha256 not in {one.schedule_sha256 for one in made}


def test_children_have_children(make: Make) -> None:
    run = make()
    timed = sampled(run, 1)
    made = run.proposals.propose(WORK, EVOLUTION, timed, known(run), 3, 0)
    timed += [TimedSchedule(one.symbol, one.sample, 0.5) for one in made]
    next_made = run.proposals.propose(BatchInProgress(2, 0), EVOLUTION, timed, known(run), 12, 0)
    assert {one.symbol for one in made} & {parent for point in points(next_made) for parent in point.parents}


@pytest.mark.parametrize("technique", [SKETCHES, EVOLUTION])
def test_equal_seeds_propose_alike(make: Make, technique: TechniqueName) -> None:
    def proposed(seed: int, work: BatchInProgress = WORK) -> list[tuple[object, ...]]:
        run = make(seed=seed)
        made = run.proposals.propose(work, technique, sampled(run), known(run), 6, 0)
        return [(point, one.schedule_sha256) for point, one in zip(points(made), made, strict=True)]

    assert proposed(1) == proposed(1)
    if technique is EVOLUTION:
        assert proposed(1) != proposed(2) and proposed(1) != proposed(1, BatchInProgress(2, 0))


@pytest.mark.parametrize(("kept", "origin"), [("own", Origin.OWN_SCHEDULE), ("incumbent", Origin.INCUMBENT)])
def test_what_is_in_use_is_the_first_sketch(make: Make, kept: str, origin: Origin) -> None:
    run = make()
    own = header_drafts(NAME)[0]
    run.store.keep_header(kept, 0, print_header(schedule_of(own, recorded(NAME), NAME), NAME))
    (first,) = run.proposals.propose(BatchInProgress(0, 0), SKETCHES, [], set(), 1, 0)
    assert first.point == SchedulePoint(origin, (), (origin.value,))
    assert technique_of(first.point) == SKETCHES
    text = run.store.schedule_path(run.store.samples / first.sample).read_text()
    assert draft_of(parse_schedule(text), recorded(NAME)) == own
    assert all(
        point.moves != (origin.value,)
        for point in points(run.proposals.propose(BatchInProgress(0, 1), SKETCHES, [], set(), 3, 1))
    )


def test_a_schedule_that_cannot_be_read_is_no_parent(make: Make) -> None:
    run = make()
    timed = sampled(run)
    run.store.schedule_path(run.store.samples / timed[0].sample).write_text("damaged")
    run.store.schedule_path(run.store.samples / timed[1].sample).unlink()
    made = run.proposals.propose(WORK, EVOLUTION, timed, known(run), 6, 0)
    assert len(made) == 6 and {parent for point in points(made) for parent in point.parents} == {timed[2].symbol}


def test_moves_of_candidates_that_failed_are_told(make: Make) -> None:
    run = make()
    point = SchedulePoint(Origin.EVOLUTION, ("a",), ("tile", "unroll", "tile"))
    symbol = kernel_symbol(NAME, 1, 0, 0)
    run.store.database.add_candidate(Candidate(1, 0, 0, symbol, point, "hash", 0.0))
    run.store.database.add_failure(SampleFailed(1, 0, 0, "build", "failed", "No."), symbol=symbol)
    beside = Candidate(1, 0, 1, kernel_symbol(NAME, 1, 0, 1), point, "other hash", 0.0)
    run.store.database.add_candidate(beside)
    timed = [*sampled(run), TimedSchedule(beside.symbol, beside.sample, 9.0)]
    population = run.proposals._population(0, timed)
    assert population is not None
    assert dict(population.failed_moves) == {"tile": 1, "unroll": 1}
    assert [one.time_ms for one in population.tried] == [1.0, 2.0, 3.0] and population.cores == 4


def test_vectors_of_floats_are_for_targets_that_have_them(make: Make) -> None:
    for target, expected in (("x86-64-linux", True), ("hexagon-32-qurt-hvx_128", False)):
        population = make(halide_target=target).proposals._population(0, [])
        assert population is not None and population.names.shape.has_float_vectors is expected


# Building


def test_what_is_built_is_the_schedule_within_a_few_times_what_others_took(make: Make) -> None:
    run = make(script=lambda task: recorded(NAME).shape if isinstance(task, DescribePipeline) else task)
    made = run.proposals.propose(WORK, EVOLUTION, sampled(run), known(run), 2, 0)
    limits = []
    for build_s in (None, 0.1, 30.0, 30.0):
        if build_s is not None:
            run.store.database.add_build(made[0].symbol, build_s, 1)
        task = cast(Any, run.proposals.submit(made[1]).result())
        assert isinstance(task, BuildSchedule) and task.symbol == made[1].symbol
        assert task.output_folder == run.store.objects / made[1].symbol
        header = run.store.schedule_path(run.store.samples / made[1].sample).read_text()
        assert parse_json(task.schedule_json) == parse_schedule(header)
        limits.append(task.limit_s)
    assert limits[0] == 80.0, "four times what a search may take"
    assert limits[1:] == [5.0, 120.0, 120.0], "and never less than five seconds"


def test_a_batch_that_is_cut_short_has_some_of_each_technique() -> None:
    def candidate(index: int, origin: Origin) -> Candidate:
        is_sampled = origin is Origin.RANDOM
        point = SearchPoint(origin, 1, 32, 80, Path("a.weights")) if is_sampled else SchedulePoint(origin)
        return Candidate(1, 0, index, f"s{index}", point, "", 0.0)

    origins = [Origin.RANDOM] * 3 + [Origin.OWN_SCHEDULE] + [Origin.SKETCH] + [Origin.EVOLUTION] * 4
    chosen = [candidate(index, origin) for index, origin in enumerate(origins)]
    assert [one.sample_index for one in mix(chosen)] == [0, 3, 5, 1, 4, 6, 2, 7, 8]
    assert mix([]) == []
