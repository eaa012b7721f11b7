"""When the rounds of a run end, and how that is called."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest

from halide_autotune.autotune_loop.run.result import Outcome
from halide_autotune.autotune_loop.run.rounds import Rounds
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.profile.loader import load_profile


def built(name: str, task_index: int = 0) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(SimpleNamespace(task_index=task_index, exhausted=False, candidates=[], name=name))
    return future


def failed(message: str) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(GeneratorError(message))
    return future


def pipeline_of(builds: Iterator[tuple[int, Future[Any] | None]], tasks: int, measured: list[str]) -> Any:
    """Rounds of so many tasks, whose builds are these, each with its task."""

    def start_build(_: object) -> Future[Any] | None:
        rounds._built_task, future = next(builds)
        return future

    rounds: Any = object.__new__(Rounds)
    rounds._states = [
        SimpleNamespace(
            task_index=place,
            failures=0,
            history=SimpleNamespace(is_exhausted=False),
            task=SimpleNamespace(generator_name="blur"),
        )
        for place in range(tasks)
    ]
    rounds._given_up = set()
    rounds._plan = SimpleNamespace(begin_batch=lambda schedules: None)
    rounds._ending = SimpleNamespace(has_come=lambda: False)
    rounds.dispatcher = SimpleNamespace(is_lost=False)
    rounds.store = SimpleNamespace(
        database=SimpleNamespace(failure_counts=lambda index: {}, last_failure=lambda index: "")
    )
    rounds.prepared = SimpleNamespace(spec=SimpleNamespace(profile=load_profile("x86-64")))
    rounds.told = list[str]()
    rounds.listen = lambda event: rounds.told.append(event.text)
    rounds._start_build = start_build
    rounds._await = lambda upcoming: upcoming.result()
    rounds._measure = lambda batch, measurer: measured.append(batch.name)
    rounds._next_task = lambda: None
    return rounds


def test_a_task_that_cannot_be_built_leaves_the_others_alone() -> None:
    measured: list[str] = []
    builds = iter([(0, failed("All searches failed.")), (1, built("second", 1)), (0, None), (0, None)])
    rounds = pipeline_of(builds, 2, measured)
    assert rounds._pipeline(cast(Any, None), cast(Any, None)) is Outcome.FINISHED
    assert measured == ["second"]
    first, second = rounds._states
    assert first.history.is_exhausted and first.failures == 1 and not second.history.is_exhausted
    assert rounds.told == ["All searches failed. The run's other tasks go on."]


@pytest.mark.parametrize("tasks", [1, 2])
def test_where_no_task_can_be_built_the_run_ends(tasks: int) -> None:
    rounds = pipeline_of(iter((place, failed(f"Task {place}.")) for place in range(tasks)), tasks, [])
    rounds._abandon = lambda upcoming: None
    with pytest.raises(GeneratorError, match=f"Task {tasks - 1}"):
        rounds._pipeline(cast(Any, None), cast(Any, None))


@pytest.mark.parametrize(("next_task", "outcome"), [(0, Outcome.BUDGET_SPENT), (None, Outcome.FINISHED)])
def test_a_batch_that_took_less_than_expected_leaves_time_for_another(next_task: int | None, outcome: Outcome) -> None:
    # While "first" is timed there is no time for another batch; once it is, there is.
    measured: list[str] = []
    builds = [(0, built("first")), (0, None), (0, built("second")), (0, None), (0, None)]
    rounds = pipeline_of(iter(builds), 1, measured)
    rounds._next_task = lambda: next_task
    assert rounds._pipeline(cast(Any, None), cast(Any, None)) is outcome
    assert measured == ["first", "second"]
