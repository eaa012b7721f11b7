"""What a batch is made of: who is asked for how many schedules, and what becomes of searches that fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from halide_autotune.autotune_loop.candidate import (
    Built,
    BuiltObject,
    Candidate,
    SearchFailure,
)
from halide_autotune.autotune_loop.execute.tasks.build_tasks import BuildObject, Search
from halide_autotune.autotune_loop.execute.tasks.task import Task
from halide_autotune.autotune_loop.search.schedule_proposals import ScheduleProposals
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.targets.build.executable import Executable
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.run import GeneratorFailure, GeneratorFailureReason
from halide_autotune.weights.weights_file import write_weights
from tests.contract.writing_process import candidate
from tests.fake_time import FakeTime
from tests.scripted_builder import builder, no_task
from tests.unit.weights.test_weights_file import random_weights


def test_each_technique_knows_what_the_batch_has_and_the_last_one_fills_it(
    store: RunStore, now: FakeTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [store.candidate_folder(0, 0, index) for index in range(2)]
    chosen = [replace(candidate(each, 0, index), schedule_sha256=str(index)) for index, each in enumerate(folders)]
    asked: list[tuple[str, set[str], int]] = []

    def propose(*given: Any) -> list[Candidate]:
        _, technique, _, known, count, first = given
        asked.append((technique, {*known}, count))
        return chosen[first : first + 1]

    weights = store.work / "w.weights"
    write_weights(random_weights(), weights)
    with builder(store, no_task) as (made, _):
        monkeypatch.setattr(made.proposals, "population", lambda *given: object())
        monkeypatch.setattr(made.proposals, "divide", lambda *given: {"sketches": 3, "annealing": 1, "evolution": 0})
        monkeypatch.setattr(made.proposals, "batch_size", lambda *given: 5)
        monkeypatch.setattr(made.proposals, "propose", propose)
        monkeypatch.setattr(made, "_build", lambda *given: [])
        made.build(0, 0, weights, lambda: None, full_search=False)
    assert asked == [("sketches", set(), 3), ("annealing", {"0"}, 1), ("evolution", {"0", "1"}, 3)]


@pytest.mark.parametrize(
    ("techniques", "sampled", "pools"),
    [
        (("sampling", "sketches"), 0, [3]),
        (("sampling", "sketches"), 2, [2, 1]),
        (("sampling", "sketches", "evolution"), 0, []),
        (("sketches",), 0, []),
    ],
)
def test_what_other_techniques_have_no_schedules_for_is_sampled_where_there_is_no_evolution(
    store: RunStore,
    now: FakeTime,
    monkeypatch: pytest.MonkeyPatch,
    techniques: tuple[str, ...],
    sampled: int,
    pools: list[int],
) -> None:
    chosen = [replace(candidate(store.candidate_folder(0, 0, n), 0, n), schedule_sha256=str(n)) for n in range(5)]
    searched_for: list[int] = []

    def pool(work: object, used: object, count: int, **more: object) -> tuple[list[Any], None]:
        if count:
            searched_for.append(count)
        return [None] * count, None

    def choose(work: object, found: list[Any], count: int, first: int) -> list[Candidate]:
        return chosen[first : first + len(found)]

    def propose(*given: Any) -> list[Candidate]:
        return chosen[given[-1] : given[-1] + 2]  # there are no more

    weights = store.work / "w.weights"
    write_weights(random_weights(), weights)
    with builder(store, no_task) as (made, _):
        monkeypatch.setattr(ScheduleProposals, "techniques", lambda proposals, task_index: techniques)
        monkeypatch.setattr(made.proposals, "population", lambda *given: object())
        monkeypatch.setattr(made.proposals, "editor", lambda *given: None)
        monkeypatch.setattr(made.proposals, "divide", lambda *given: {"sampling": sampled, "sketches": 5 - sampled})
        monkeypatch.setattr(made.proposals, "batch_size", lambda *given: 5)
        monkeypatch.setattr(made.proposals, "propose", propose)
        for name, instead in (("_pool", pool), ("_choose", choose)):
            monkeypatch.setattr(made, name, instead)
        built: list[Candidate] = []

        def build(work: object, wanted: list[Candidate], *given: object) -> list[Built]:
            built.extend(wanted)
            return []

        monkeypatch.setattr(made, "_build", build)
        made.build(0, 0, weights, lambda: None, full_search=False)
    assert searched_for == pools
    assert {one.sample_index for one in built} == {*range(sum(pools) + 2)}


@pytest.mark.parametrize("full_search", [False, True])
def test_where_no_search_succeeds_other_techniques_are_enough_if_there_is_no_default(
    store: RunStore, now: FakeTime, monkeypatch: pytest.MonkeyPatch, full_search: bool
) -> None:
    chosen = [candidate(store.candidate_folder(0, 0, index), 0, index) for index in range(3)]
    for one in chosen:
        store.database.add_candidate(one)

    def work(task: Task[Any]) -> object:
        if isinstance(task, Search):
            failure = GeneratorFailure(GeneratorFailureReason.TIMED_OUT, "It did not end.", "", 1.0)
            return SearchFailure(task.point, failure)
        if isinstance(task, BuildObject):
            task.output_folder.mkdir(parents=True)
            path = task.output_folder / "f.o"
            path.write_bytes(b"code")
            return BuiltObject(task.symbol, path, None, 1.0)
        return Executable(store.work / "batch", (), "")

    weights = store.work / "w.weights"
    write_weights(random_weights(), weights)
    with builder(store, work) as (made, _):
        monkeypatch.setattr(made.proposals, "population", lambda *given: object())
        monkeypatch.setattr(made.proposals, "editor", lambda *given: None)
        monkeypatch.setattr(made.proposals, "divide", lambda *given: {"sampling": 2, "sketches": 3})
        monkeypatch.setattr(made.proposals, "propose", lambda *given: chosen)
        monkeypatch.setattr(made.proposals, "submit", made._submit_build)
        if full_search:  # the others are compared with it
            with pytest.raises(GeneratorError, match="searches failed"):
                made.build(0, 0, weights, lambda: None, full_search=True)
        else:
            batch = made.build(0, 0, weights, lambda: None, full_search=False)
            assert batch.candidates == tuple(chosen) and not batch.exhausted
