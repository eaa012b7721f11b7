"""When the rounds of a run end, and how that is called."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest

from halide_autotune.autotune_loop.run.result import Outcome
from halide_autotune.autotune_loop.run.rounds import Rounds


@pytest.mark.parametrize(("next_task", "outcome"), [(0, Outcome.BUDGET_SPENT), (None, Outcome.FINISHED)])
def test_a_batch_that_took_less_than_expected_leaves_time_for_another(next_task: int | None, outcome: Outcome) -> None:
    # While "first" is timed there is no time for another batch; once it is, there is.
    builds = iter(["first", None, "second", None, None])
    measured: list[str] = []

    def start_build(_: object) -> Future[Any] | None:
        name = next(builds)
        if name is None:
            return None
        future: Future[Any] = Future()
        future.set_result(SimpleNamespace(task_index=0, exhausted=False, candidates=[], name=name))
        return future

    rounds: Any = object.__new__(Rounds)
    rounds._states = [SimpleNamespace(history=SimpleNamespace(is_exhausted=False))]
    rounds._plan = SimpleNamespace(begin_batch=lambda schedules: None)
    rounds._ending = SimpleNamespace(has_come=lambda: False)
    rounds.dispatcher = SimpleNamespace(is_lost=False)
    rounds._start_build = start_build
    rounds._await = lambda upcoming: upcoming.result()
    rounds._measure = lambda batch, measurer: measured.append(batch.name)
    rounds._next_task = lambda: next_task
    assert rounds._pipeline(cast(Any, None), cast(Any, None)) is outcome
    assert measured == ["first", "second"]
