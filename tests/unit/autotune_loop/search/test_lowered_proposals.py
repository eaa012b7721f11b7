"""A run's proposals are lowered before they are chosen, and the loop nests of all that is timed are kept."""

from __future__ import annotations

from typing import Any

import pytest

from halide_autotune.autotune_loop.execute.tasks.schedule_tasks import BuildSchedule, LowerSchedules
from halide_autotune.autotune_loop.execute.tasks.task import Task
from halide_autotune.autotune_loop.lowered.lowered_file import read_lowered
from halide_autotune.autotune_loop.search.models.model import OF_NESTS
from halide_autotune.autotune_loop.search.models.population_model import ENOUGH_TIMED
from halide_autotune.autotune_loop.search.pool import BatchInProgress
from halide_autotune.autotune_loop.technique_name import TechniqueName
from halide_autotune.targets.generator.run import GeneratorFailure, GeneratorFailureReason
from halide_autotune.targets.lowering.loop_nest import VERSION, Computation, Loop, LoopNest
from halide_autotune.targets.lowering.lower import Lowered
from tests.drafted_pipelines import recorded
from tests.proposal_setting import NAME, WORK, Make, Setting, known, sampled

WANTED = 6


def nest(text: str) -> LoopNest:
    """Some work that follows from the schedule."""
    work = Computation("output", {"int_add": float(text.count("split"))}, ())
    return LoopNest(VERSION, 32, Loop("", "", "root", 1.0, 0, (work,), (), ()))


def answer(task: Task[Any]) -> object:
    if isinstance(task, LowerSchedules):
        return Lowered(tuple(nest(text) for text in task.schedules_json), 0.0)
    return recorded(NAME).shape


def lowered(run: Setting) -> list[str]:
    return [text for task in run.asked if isinstance(task, LowerSchedules) for text in task.schedules_json]


@pytest.mark.parametrize(("model", "acquisition"), [*((one, "bound") for one in OF_NESTS), ("trees", "improvement")])
def test_what_is_proposed_was_lowered_and_its_loop_nest_is_kept(make: Make, model: str, acquisition: str) -> None:
    run = make(script=answer, model=model, acquisition=acquisition)
    timed = sampled(run, ENOUGH_TIMED + 5)
    proposed = run.propose(WORK, TechniqueName.EVOLUTION, timed, known(run), WANTED, 0)
    assert len(proposed) == WANTED
    texts = lowered(run)
    assert len({*texts}) == len(texts) > 2 * WANTED, "each once, and more than are proposed"
    for sample in [*(one.sample for one in timed), *(one.sample for one in proposed)]:
        text = run.proposals.schedule_json(sample)
        assert read_lowered(run.store.lowered_path(run.store.samples / sample)) == nest(text)


def test_the_next_batch_lowers_only_what_is_new(make: Make) -> None:
    run = make(script=answer)
    timed = sampled(run, ENOUGH_TIMED + 5)
    run.propose(WORK, TechniqueName.EVOLUTION, timed, known(run), WANTED, 0)
    before = {*lowered(run)}
    run.propose(BatchInProgress(2, 0), TechniqueName.EVOLUTION, timed, known(run), WANTED, 0)
    texts = lowered(run)
    assert before < {*texts} and len({*texts}) == len(texts)


def test_for_a_technique_without_a_share_nothing_is_lowered(make: Make) -> None:
    run = make(script=answer)
    timed = sampled(run, ENOUGH_TIMED + 5)
    assert run.propose(WORK, TechniqueName.EVOLUTION, timed, known(run), 0, 0) == []
    assert not lowered(run)


def test_with_another_model_and_with_few_times_nothing_is_lowered(make: Make) -> None:
    few = make(script=answer)
    few.propose(WORK, TechniqueName.EVOLUTION, sampled(few, 5), known(few), WANTED, 0)
    other = make(script=answer, model="gaussian_process")
    other.propose(WORK, TechniqueName.EVOLUTION, sampled(other, ENOUGH_TIMED + 5), known(other), WANTED, 0)
    assert not lowered(few) and not lowered(other)


def test_loop_nests_are_written_with_the_code_where_models_want_them(make: Make) -> None:
    run = make(script=answer)
    (one,) = sampled(run, 1)
    assert run.proposals.wants_nest(0, one.sample)
    path = run.store.lowered_path(run.store.samples / one.sample)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    assert not run.proposals.wants_nest(0, one.sample), "it is there"
    failed = GeneratorFailure(GeneratorFailureReason.FAILED, "There is no C++ compiler.", "", 0.0)
    others = (make(model="gaussian_process"), make("sampling"), make(gpu=object()), make(script=lambda task: failed))
    assert not any(other.proposals.wants_nest(0, "batch_0_0/1") for other in others)


def test_what_was_lowered_for_its_choice_is_not_described_again(make: Make) -> None:
    run = make(script=answer)
    proposed = run.propose(WORK, TechniqueName.EVOLUTION, sampled(run, ENOUGH_TIMED), known(run), WANTED, 0)
    (sketch, *_) = run.propose(WORK, TechniqueName.SKETCHES, [], known(run), 1, WANTED)
    for candidate in (proposed[0], sketch):
        run.proposals.submit(candidate).result()
    builds = [task.describes for task in run.asked if isinstance(task, BuildSchedule)]
    assert builds == [False, True]
