"""Whether the default is timed again, what is said where it has no time, and what is published without it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.autotune_loop.candidate import BuiltObject
from halide_autotune.autotune_loop.events import Event, Notice, SampleFailed
from halide_autotune.autotune_loop.execute.tasks.build_tasks import BuildObject, BuildWithHeader
from halide_autotune.autotune_loop.execute.tasks.task import Task
from halide_autotune.autotune_loop.measure.batch_measurer import TaskReference
from halide_autotune.autotune_loop.run.default_schedule import (
    failed_on_a_device,
    is_left_over,
    keep_failure,
    restore_objects,
)
from halide_autotune.autotune_loop.run.task_state import TaskState
from halide_autotune.autotune_loop.run.timed import Timed
from halide_autotune.autotune_loop.store.published import NoDefault
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.devices.timing.measure_settings import Tolerance
from halide_autotune.targets.generator.run import GeneratorFailure, GeneratorFailureReason
from tests.contract.writing_process import HEADER, RECORD, candidate, symbol
from tests.run_specs import make_task
from tests.scripted_executor import ScriptedExecutor

DEFAULT = symbol(0, 0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    made = RunStore(tmp_path / "run", RECORD, resume=False)
    yield made
    made.close()


@pytest.fixture
def state() -> TaskState:
    made = TaskState(0, make_task("blur"), TaskReference(None, Tolerance(), 1))
    made.history.started = 1
    return made


def fail(store: RunStore, stage: str, reason: str) -> None:
    store.database.add_failure(SampleFailed(0, 0, 0, stage, reason, "It\nfailed."), symbol=DEFAULT)


def time_schedule(store: RunStore, state: TaskState, name: str, median_ms: float, is_default: bool = False) -> None:
    index = 0 if is_default else 1
    folder = store.candidate_folder(0, 0, index)
    folder.mkdir(parents=True)
    store.schedule_path(folder).write_text(HEADER)
    store.database.add_candidate(candidate(folder, 0, index))
    state.add_timed(Timed(name, f"batch_0_0/{index}", "full beam search", median_ms, 0.1, is_default, "pi"))


@pytest.mark.parametrize(
    ("stage", "reason", "left_over", "again_in_this_run", "sentence"),
    [
        ("search", "failed", True, False, "its search failed (failed): It failed."),
        ("search", "over budget", True, False, "its search failed (over budget): It failed."),
        ("build", "timed out", True, False, "it could not be built (timed out): It failed."),
        ("measure", "device trouble", True, True, ""),
        ("interrupted", "stopped", True, True, ""),
        ("measure", "wrong output", False, False, "it failed when it was timed (wrong output): It failed."),
        ("measure", "crashed", False, False, "it failed when it was timed (crashed): It failed."),
        ("measure", "kills devices", False, False, "it failed when it was timed (kills devices): It failed."),
    ],
)
def test_what_is_no_fault_of_the_default_is_tried_again(
    store: RunStore,
    state: TaskState,
    stage: str,
    reason: str,
    left_over: bool,
    again_in_this_run: bool,
    sentence: str,
) -> None:
    fail(store, stage, reason)
    assert is_left_over(store, state) == left_over
    assert failed_on_a_device(store, state) == again_in_this_run
    keep_failure(store, state)
    assert (state.no_default.reason if state.no_default else "") == sentence
    assert state.has_baseline == bool(sentence) and not (state.has_baseline and is_left_over(store, state))


def test_a_default_that_never_got_that_far_is_left_over_once_a_batch_was_begun(
    store: RunStore, state: TaskState
) -> None:
    assert is_left_over(store, state) and not failed_on_a_device(store, state)
    state.history.started = 0
    assert not is_left_over(store, state), "the first batch builds it"


def test_a_device_that_fails_twice_is_the_reason_and_the_end_of_the_run_is_none(
    store: RunStore, state: TaskState
) -> None:
    fail(store, "interrupted", "stopped")
    keep_failure(store, state, tried_again=True)
    assert not state.has_baseline
    fail(store, "measure", "device trouble")
    keep_failure(store, state, tried_again=True)
    assert state.no_default is not None and "(device trouble)" in state.no_default.what


def test_nothing_is_published_before_the_default(store: RunStore, state: TaskState) -> None:
    time_schedule(store, state, symbol(0, 1), 2.0)
    state.publish_best(store, "wall")
    tuned = state.unconfirmed(store, "wall")
    assert tuned.header is None and tuned.published.no_default == NoDefault("the run ended before it was timed")
    assert not store.best_schedule(0).exists()
    time_schedule(store, state, DEFAULT, 5.0, is_default=True)
    state.publish_best(store, "wall")
    tuned = state.unconfirmed(store, "wall")
    assert (tuned.header, tuned.published.no_default, tuned.speed_up) == (store.best_schedule(0), None, 2.5)
    benchmark = store.best_schedule(0).with_name("best.blur.benchmark.txt").read_text()
    assert benchmark.splitlines()[-1] == "2.50 times as fast as the default, one timing"


def test_a_default_that_cannot_be_timed_is_published_with_the_reason(store: RunStore, state: TaskState) -> None:
    time_schedule(store, state, symbol(0, 1), 2.0)
    fail(store, "measure", "crashed")
    keep_failure(store, state)
    state.publish_best(store, "wall")
    assert state.no_default is not None
    assert state.unconfirmed(store, "wall").published.no_default == state.no_default
    assert state.no_default.sentence in store.best_schedule(0).with_name("best.blur.benchmark.txt").read_text()


@pytest.mark.parametrize(
    ("header", "search", "built"), [(True, True, True), (False, True, True), (True, False, True), (False, False, False)]
)
def test_lost_code_is_built_from_the_header_or_else_by_the_search(
    store: RunStore, state: TaskState, header: bool, search: bool, built: bool
) -> None:
    time_schedule(store, state, DEFAULT, 5.0, is_default=True)
    if not header:
        store.schedule_path(store.candidate_folder(0, 0, 0)).unlink()
    said: list[Event] = []
    done: list[str] = []

    def build(task: Task[Any]) -> object:
        assert isinstance(task, BuildWithHeader | BuildObject) and task.symbol == DEFAULT
        done.append(task.kind)
        if isinstance(task, BuildObject) and not search:
            return GeneratorFailure(GeneratorFailureReason.CRASHED, "The search crashed.", "", 0.0)
        task.output_folder.mkdir(parents=True)
        path = store.object_path(DEFAULT)
        path.write_bytes(b"object")
        (path.parent / "made.schedule.h").write_text(HEADER)
        return BuiltObject(DEFAULT, path, path.parent / "made.schedule.h", 0.1)

    executor = ScriptedExecutor(build)
    restore_objects(executor, store, state.kept(4), said.append)
    restore_objects(
        executor, store, state.kept(4), lambda event: pytest.fail(f"it is there: {event}")
    ) if built else None
    executor.close()
    assert done == (["build_with_header"] if header else ["build_object"])
    entries = state.entries(store, 4)
    if built:
        assert entries is not None and (entries.baseline, said) == (DEFAULT, [])
    else:
        (notice,) = said
        assert entries is None and isinstance(notice, Notice) and notice.warning
        assert notice.text.endswith("the default, whose code is lost and cannot be built again: The search crashed.")


def test_code_that_failed_is_not_built_again(store: RunStore, state: TaskState) -> None:
    """A leader that crashed in a later process of its race keeps its first time."""
    time_schedule(store, state, DEFAULT, 5.0, is_default=True)
    fail(store, "measure", "crashed")
    restore_objects(
        ScriptedExecutor(lambda task: pytest.fail(f"{task} was asked for")), store, state.kept(4), lambda e: None
    )
    assert state.entries(store, 4) is None
