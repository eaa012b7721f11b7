"""A first search that comes to a dead end: other starts are tried, and the Func is named."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from halide_autotune.autotune_loop.candidate import Origin, SearchedSchedule, SearchFailure
from halide_autotune.autotune_loop.events import Event, Notice
from halide_autotune.autotune_loop.execute.tasks.build_tasks import BuiltReference, Search
from halide_autotune.autotune_loop.execute.tasks.task import Task
from halide_autotune.autotune_loop.run.nothing_timed import no_search
from halide_autotune.autotune_loop.search.dead_end import search_elsewhere
from halide_autotune.autotune_loop.search.plan import greedy_point
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.targets.build.executable import KernelObject
from halide_autotune.targets.generator.run import GeneratorFailure, GeneratorFailureReason
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.schedule.plugins import ALL_AT_ROOT
from tests.contract.writing_process import RECORD
from tests.scripted_executor import ScriptedExecutor


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    made = RunStore(tmp_path / "run", RECORD, resume=False)
    yield made
    made.close()


def dead_end(task: Search) -> SearchFailure:
    what = "histogram" if task.explains else "one of its Funcs"
    failure = GeneratorFailure(GeneratorFailureReason.DEAD_END, f"No schedule of {what}.", "", 0.1)
    return SearchFailure(task.point, failure)


def elsewhere(
    store: RunStore, good: set[Origin], heard: list[Event]
) -> tuple[SearchedSchedule | SearchFailure, list[Search]]:
    """What comes of a dead end if searches of these kinds succeed, and the searches."""
    asked: list[Search] = []

    def script(task: Task[Any]) -> object:
        assert isinstance(task, Search)
        asked.append(task)
        if task.point.origin in good:
            return SearchedSchedule(task.point, task.output_folder, Path("f"), "sha", 0.1, None)
        return dead_end(task)

    context = SimpleNamespace(
        spec=SimpleNamespace(options=RunOptions()), workspace=SimpleNamespace(work_folder=store.work)
    )
    first = Search(store.work / "first", 0, greedy_point(0, store.updated_weights))
    with contextlib.closing(ScriptedExecutor(script)) as executor:
        result = search_elsewhere(executor, store, cast(Any, context), 0, dead_end(first), heard.append, StopSignal())
    return result, asked


def test_a_run_goes_on_with_another_start(store: RunStore) -> None:
    heard: list[Event] = []
    result, asked = elsewhere(store, {Origin.RANDOM}, heard)
    assert isinstance(result, SearchedSchedule) and result.point.origin is Origin.RANDOM
    assert [task.explains for task in asked] == [True, False]
    (told,) = heard
    assert isinstance(told, Notice) and told.warning
    assert told.text == "No schedule of histogram. Another search succeeds, so the run goes on."


def test_the_full_beam_comes_last(store: RunStore) -> None:
    result, asked = elsewhere(store, {Origin.FULL_BEAM}, [])
    assert isinstance(result, SearchedSchedule)
    origins = [task.point.origin for task in asked]
    assert origins[-1] is Origin.FULL_BEAM and set(origins[1:-1]) == {Origin.RANDOM}
    assert len({task.output_folder for task in asked}) == len(asked)


def test_where_all_fail_the_func_is_named_and_what_can_be_built(store: RunStore) -> None:
    heard: list[Event] = []
    result, _ = elsewhere(store, set(), heard)
    assert isinstance(result, SearchFailure) and not heard
    task, profile = RECORD.spec.tasks[0], load_profile("x86-64")
    names = f"{task.reference.file.name}:{task.generator_name}"
    built = BuiltReference("Mullapudi2016", KernelObject("f", Path("f.o")), Path("f.schedule.h"), True, 0, 1.0)
    error = no_search(task, profile, result.failure, built)
    assert str(error) == (
        "No search of Adams2019 gives a schedule, so there is nothing to tune. No schedule of histogram."
        f" What can be built is timed by: sdk bench {names} --schedule own --schedule mullapudi2016"
    )
    at_root = BuiltReference(ALL_AT_ROOT, built.kernel, built.schedule_path, True, 2, 1.0)
    for without in (at_root, result.failure, None):
        assert str(no_search(task, profile, result.failure, without)).endswith(f"{names} --schedule own")
