"""Which techniques a run uses: those asked for that its pipeline, its target and their own health allow."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, cast

import pytest

from halide_autotune.autotune_loop.candidate import (
    Origin,
    technique_of,
)
from halide_autotune.autotune_loop.events import Notice
from halide_autotune.autotune_loop.execute.tasks.schedule_tasks import DescribePipeline
from halide_autotune.autotune_loop.search.models.population import Population
from halide_autotune.autotune_loop.search.techniques import registry
from halide_autotune.autotune_loop.search.techniques.evolution import Evolution
from halide_autotune.autotune_loop.search.techniques.technique import Proposal
from halide_autotune.autotune_loop.technique_name import TechniqueName
from halide_autotune.targets.errors import ToolchainError
from halide_autotune.targets.generator.run import GeneratorFailure, GeneratorFailureReason
from tests.proposal_setting import WORK, Make, known, sampled

SAMPLING, SKETCHES, EVOLUTION, ANNEALING, PATTERN = TechniqueName


def test_techniques_that_were_asked_for_are_used_with_evolution_last(make: Make) -> None:
    assert make("evolution,sampling,sketches").proposals.techniques(0) == (SAMPLING, SKETCHES, EVOLUTION)
    asked = make("evolution,pattern,annealing,sketches").proposals
    assert asked.techniques(0) == (SKETCHES, ANNEALING, PATTERN, EVOLUTION)


@pytest.mark.parametrize("left", [{"gpu": object()}, {"space": object()}, {"technique": "sampling"}])
def test_gpus_and_tuned_parameters_are_left_to_sampling_and_nothing_is_described(
    make: Make, left: dict[str, Any]
) -> None:
    run = make(**left)
    run.proposals.begin()
    assert run.proposals.techniques(0) == (SAMPLING,)
    assert run.proposals.divide(WORK, sampled(run), 8) == {SAMPLING: 8}
    assert run.asked == []


@pytest.mark.parametrize("begins", [True, False])
def test_a_pipeline_is_described_once(make: Make, begins: bool) -> None:
    run = make()
    if begins:
        run.proposals.begin()
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
    assert run.propose(WORK, EVOLUTION, sampled(run), (), 4, 0) == []
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
    made = run.propose(WORK, "faulty", sampled(run), known(run), 6, 0)
    assert [(one.point.origin, technique_of(one.point)) for one in made] == [(Origin.PLUG_IN, "faulty")] * 2
    assert run.store.database.candidates(0)[-1].point == made[-1].point, "it is read as it was written"
    assert [event.text for event in run.heard if isinstance(event, Notice)] == [
        "The technique 'faulty' failed, and is not asked again in this run: ValueError: no such loop"
    ]
    assert run.proposals.techniques(0) == (SAMPLING, EVOLUTION)
    alone = make("faulty")
    assert len(alone.propose(WORK, "faulty", sampled(alone), known(alone), 6, 0)) == 2
    assert alone.proposals.techniques(0) == (SAMPLING,), "a run goes on"


def test_a_technique_that_a_pipeline_is_too_deep_for_is_not_asked_again(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_deep(evolution: Evolution, population: Population, count: int, source: Random) -> Iterator[Proposal]:
        return too_deep(evolution, population, count, source)

    monkeypatch.setattr(Evolution, "propose", too_deep)
    run = make("sampling,sketches,evolution")
    assert run.propose(WORK, EVOLUTION, sampled(run), known(run), 6, 0) == []
    (notice,) = (event for event in run.heard if isinstance(event, Notice))
    assert notice.warning and notice.text.startswith("evolution is not asked again in this run: too many Funcs")
    assert run.proposals.techniques(0) == (SAMPLING, SKETCHES)


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
        run.propose(WORK, "curious", tried, known(run), 4, 0)
        return {**curious.given[-1].busy}

    assert busy() == {}
    # Halide's own work is a row, too; of the fastest itself nothing is known.
    shares = {"waiting for parallel tasks to finish": 0.5, "output": 0.375, "columns": 0.125}
    run.store.database.add_func_shares(tried[2].symbol, {"output": 1.0})
    run.store.database.add_func_shares(tried[1].symbol, shares)
    run.store.database.add_func_shares(tried[0].symbol, {})
    assert busy() == {"output": 0.75, "columns": 0.25}
