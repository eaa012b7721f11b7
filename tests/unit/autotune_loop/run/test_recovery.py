"""A resumed run knows what was timed, chosen and begun before, and teaches its model all of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from halide_autotune.autotune_loop.candidate import Candidate, Origin, SearchPoint, TrainingSample
from halide_autotune.autotune_loop.events import Event, Notice, SampleFailed
from halide_autotune.autotune_loop.measure.batch_measurer import TaskReference
from halide_autotune.autotune_loop.play_off.incumbent import Incumbent
from halide_autotune.autotune_loop.run.recovery import account_for_unfinished, left_over, recover
from halide_autotune.autotune_loop.run.task_state import LEARN_STAGE, TaskState
from halide_autotune.autotune_loop.run.timed import Timed
from halide_autotune.autotune_loop.store.featurization import Featurization, format_featurization
from halide_autotune.autotune_loop.store.published import DEFAULT, INCUMBENT, Published, ScheduleTime, SpeedUp
from halide_autotune.autotune_loop.store.run_database import NOT_DONE
from halide_autotune.autotune_loop.store.run_record import RunRecord, read_run_record
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.autotune_loop.store.sample_file import read_sample
from halide_autotune.devices.timing.measure_settings import Tolerance
from tests.contract.writing_process import HEADER, RECORD, candidate, measurement, symbol
from tests.run_specs import make_task

FEATURES = format_featurization(Featurization(np.ones((2, 39), np.float32), np.ones((2, 287), np.float32)))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    """A run that was killed in its second round: three schedules timed, one chosen, and no sample written."""
    made = RunStore(tmp_path / "run", RECORD, resume=False)
    for round_index, index, median_s in ((0, 0, 4e-3), (0, 1, 2e-3), (1, 0, 3e-3), (1, 1, None)):
        one = choose(made, round_index, index)
        if median_s is not None:
            made.database.add_measurement(measurement(one.symbol, median_s), "sample", 0.5)
    made.database.add_batch(0, 0, {"search": 1.0, "measure": 2.0, LEARN_STAGE: 50.0})
    yield made
    made.close()


def choose(store: RunStore, round_index: int, index: int) -> Candidate:
    folder = store.candidate_folder(round_index, 0, index)
    folder.mkdir(parents=True)
    store.featurization_path(folder).write_bytes(FEATURES)
    one = candidate(folder, round_index, index)
    store.database.add_candidate(one)
    return one


@pytest.fixture
def state() -> TaskState:
    return TaskState(0, make_task("blur"), TaskReference(None, Tolerance(), 7))


def resume(store: RunStore, state: TaskState) -> tuple[int, list[TrainingSample], list[Event]]:
    """The newest round, what a model is told to learn from, and what is told."""
    taught, events = list[TrainingSample](), list[Event]()
    newest = recover(store, [state], taught.append, events.append)
    return newest, taught, events


def test_what_was_measured_counts(store: RunStore, state: TaskState) -> None:
    newest, _, events = resume(store, state)
    assert newest == 1
    assert [timed.symbol for timed in state.timed] == [symbol(0, 1), symbol(1, 0), symbol(0, 0)]
    assert state.best_ms == pytest.approx(2.0)
    assert [event.text for event in events if isinstance(event, Notice)] == ["Resumed with 3 timed schedules."]


def test_what_failed_when_it_was_timed_again_has_no_time(store: RunStore, state: TaskState) -> None:
    failure = SampleFailed(0, 0, 1, "race", "wrong output", "The output differs.")
    store.database.add_failure(failure, symbol=symbol(0, 1))
    resume(store, state)
    assert [timed.symbol for timed in state.timed] == [symbol(1, 0), symbol(0, 0)]
    assert state.best_ms == pytest.approx(3.0)


def test_a_quick_full_search_is_known_to_be_quick(store: RunStore, state: TaskState) -> None:
    folder = store.candidate_folder(2, 0, 0)
    sampled = candidate(folder, 2, 0)
    assert isinstance(sampled.point, SearchPoint)
    one = replace(sampled, point=replace(sampled.point, origin=Origin.FULL_BEAM), search_s=0.4)
    store.database.add_candidate(one)
    store.database.add_measurement(measurement(one.symbol, 1e-3), "sample", 0.5)
    resume(store, state)
    assert state.history.full_search_s == 0.4


def test_the_model_learns_all_of_it_from_samples_that_are_written_if_they_are_missing(
    store: RunStore, state: TaskState
) -> None:
    _, taught, _ = resume(store, state)
    assert [sample.measured.median_ms for sample in taught] == pytest.approx([4.0, 2.0, 3.0])
    for sample in taught:
        written = read_sample(store.sample_path(sample.featurization_path.parent))
        assert written.runtime_ms == pytest.approx(sample.measured.median_ms) and written.pipeline_id == 7


def test_a_sample_that_a_power_cut_has_left_empty_is_written_again(store: RunStore, state: TaskState) -> None:
    _, (first, *_), _ = resume(store, state)
    path = store.sample_path(first.featurization_path.parent)
    path.write_bytes(b"")
    resume(store, TaskState(0, state.task, state.reference))
    assert read_sample(path).runtime_ms == pytest.approx(first.measured.median_ms)


def test_what_has_failed_while_nothing_was_timed_still_counts(
    tmp_path: Path, store: RunStore, state: TaskState
) -> None:
    """So that a task of which nothing can be timed is given up in a resumed run, too."""
    resume(store, state)
    assert state.failures is None, "something was timed"
    with closing(RunStore(tmp_path / "hopeless", RECORD, resume=False)) as hopeless:
        others = TaskState(0, state.task, state.reference)
        resume(hopeless, others)
        assert others.failures == 0
        for index in range(5):
            one = choose(hopeless, 0, index)
            reason = NOT_DONE if index == 4 else "wrong output"
            hopeless.database.add_failure(
                SampleFailed(0, 0, None, "measure", reason, "It is wrong."), symbol=one.symbol
            )
        others.add_timed(Timed("blur_reference_a0", "reference/0", "Mullapudi2016", 3.0, 0.1, False, "pi"))
        resume(hopeless, others)
        assert others.failures == 4, "a reference's time is no candidate's"


def test_a_lost_featurization_costs_its_sample_and_is_told(store: RunStore, state: TaskState) -> None:
    store.featurization_path(store.candidate_folder(0, 0, 1)).unlink()
    _, taught, events = resume(store, state)
    assert len(taught) == 2 and len(state.timed) == 3
    (warning,) = [event for event in events if isinstance(event, Notice) and event.warning]
    assert "does not train on 1 of them" in warning.text


def test_batches_go_on_where_they_were(store: RunStore, state: TaskState) -> None:
    resume(store, state)
    assert state.history.started == 2, "the second was begun"
    assert state.history.best_ms == pytest.approx([2.0]), "only the first is complete"
    assert state.history.batch_s == pytest.approx([3.0]), "training is not the batch's own time"


def test_what_was_chosen_and_not_timed_is_left_over_and_accounted_for(store: RunStore, state: TaskState) -> None:
    assert [one.symbol for one in left_over(store.database, 0)] == [symbol(1, 1)]
    resume(store, state)
    failure = store.database.failure_of(symbol(1, 1))
    assert failure is not None and failure.reason == "stopped"
    assert [one.symbol for one in left_over(store.database, 0)] == [symbol(1, 1)], "it was not its fault"
    account_for_unfinished(store.database)
    assert sum(store.database.failure_counts().values()) == 0, "what had no time is no failure"


def test_a_new_run_recovers_nothing(tmp_path: Path, state: TaskState) -> None:
    store = RunStore(tmp_path / "new", RECORD, resume=False)
    newest, taught, events = resume(store, state)
    store.close()
    assert (newest, taught, events, state.timed) == (0, [], [], [])


def publish(store: RunStore, sample: str, than: str, *, confirmed: bool = True) -> None:
    path = store.schedule_path(store.samples / sample)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEADER.format(body=f"// {sample}"))
    time = ScheduleTime(2.0, 0.1, (1.9, 2.1), 8)
    speed_up = SpeedUp(2.0, than, 1.9, 2.1)
    store.publish(0, path, Published(sample, "kernel", confirmed, "faster", "It won.", time, time, speed_up), "wall")


@pytest.mark.parametrize(
    ("than", "sample", "confirmed", "incumbent", "stays"),
    [
        (DEFAULT, "batch_0_0/1", True, "", True),
        (DEFAULT, "batch_0_0/1", False, "", False),
        (DEFAULT, "batch_0_0/1", True, INCUMBENT, False),
        (INCUMBENT, "batch_0_0/1", True, INCUMBENT, True),
        (DEFAULT, INCUMBENT, True, INCUMBENT, True),
    ],
)
def test_what_a_play_off_has_confirmed_stays_if_it_has_met_what_is_to_be_beaten(
    store: RunStore, state: TaskState, than: str, sample: str, confirmed: bool, incumbent: str, stays: bool
) -> None:
    publish(store, sample, than, confirmed=confirmed)
    if incumbent:
        state.incumbent = Incumbent(incumbent, "in_use", None)
    resume(store, state)
    assert (state.confirmed is not None) == stays


def in_use(sha256: str) -> RunRecord:
    """A run with a header in use of that content."""
    return replace(RECORD, made_with=replace(RECORD.made_with, incumbent_sha256={"blur": sha256} if sha256 else {}))


@pytest.mark.parametrize(("before", "now", "stays"), [("a", "a", True), ("a", "b", False), ("a", "", True)])
def test_what_was_confirmed_against_another_header_in_use_is_not_confirmed(
    tmp_path: Path, before: str, now: str, stays: bool
) -> None:
    with closing(RunStore(tmp_path / "run", in_use(before), resume=False)) as store:
        publish(store, "batch_0_0/1", INCUMBENT)
    for _ in range(2):  # nor is it by the next resumed run, which has the same header
        with closing(RunStore(tmp_path / "run", in_use(now), resume=True)) as store:
            assert (store.confirmed(0) is not None) == stays
        assert read_run_record(tmp_path / "run").made_with == in_use(now).made_with
