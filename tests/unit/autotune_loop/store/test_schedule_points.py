"""Schedules that were made as data are kept with what they were made from, and can be built again from that."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.autotune_loop.candidate import (
    BuiltObject,
    Candidate,
    Origin,
    ParameterPoint,
    Point,
    SchedulePoint,
    SearchPoint,
    kernel_symbol,
)
from halide_autotune.autotune_loop.execute.tasks.build_tasks import BuildWithHeader
from halide_autotune.autotune_loop.execute.tasks.task import Task
from halide_autotune.autotune_loop.lowered.lowered_file import read_lowered
from halide_autotune.autotune_loop.search.lost_objects import rebuild
from halide_autotune.autotune_loop.store.run_database import RunDatabase
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.devices.device import Clock
from halide_autotune.devices.timing.measurement import Measurement
from halide_autotune.targets.errors import GeneratorError, RunFolderError
from halide_autotune.targets.generator.run import GeneratorFailure, GeneratorFailureReason
from halide_autotune.targets.lowering.loop_nest import VERSION, Loop, LoopNest, print_loop_nest
from tests.contract.writing_process import HEADER, RECORD
from tests.scripted_executor import ScriptedExecutor

TEXT = HEADER.format(body="    // made as data")
CHILD = SchedulePoint(Origin.EVOLUTION, ("blur_r0_a0_s1", "blur_r0_a0_s2"), ("tile", "unroll", "tile"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    made = RunStore(tmp_path / "run", RECORD, resume=False)
    yield made
    made.close()


def candidate(point: Point = CHILD, sample_index: int = 0, task_index: int = 0) -> Candidate:
    symbol = kernel_symbol("blur", 2, task_index, sample_index)
    return Candidate(2, task_index, sample_index, symbol, point, f"hash of {symbol}", 0.0)


@pytest.mark.parametrize(
    "point",
    [
        CHILD,
        SchedulePoint(Origin.SKETCH, moves=("rows-blocks-3x4",)),
        SchedulePoint(Origin.OWN_SCHEDULE),
        SchedulePoint(Origin.EVOLUTION, ("a",), ("stop inlining",), {"unroll": "4"}),
    ],
)
def test_a_point_comes_back_from_the_database_as_it_was(store: RunStore, point: SchedulePoint) -> None:
    kept = candidate(point)
    assert store.keep_schedule(kept, TEXT) == kept
    with contextlib.closing(RunDatabase(store.folder / "tuning.db")) as database:
        found = database.candidate(kept.symbol)
        assert found == kept and database.candidates(0) == [kept]
    assert found is not None and isinstance(found.point, SchedulePoint)
    assert not found.has_features and found.seed is None and not found.is_default


def test_other_points_have_no_lineage(store: RunStore) -> None:
    folder = store.batch_folder(2, 0)
    searched = candidate(SearchPoint(Origin.RANDOM, 3, 1, 5, folder / "used.weights", 0.25), 0)
    parameters = candidate(ParameterPoint(Origin.PARAMETERS, {"vector": "8"}), 1)
    for one in (searched, parameters):
        store.database.add_candidate(one)
    store.keep_schedule(candidate(sample_index=2), TEXT)
    assert store.database.candidates(0) == [searched, parameters, candidate(sample_index=2)]
    with contextlib.closing(sqlite3.connect(store.folder / "tuning.db")) as connection:
        lineages = [text for (text,) in connection.execute("SELECT lineage FROM candidates ORDER BY candidate")]
    assert lineages[:2] == [None, None]
    assert json.loads(lineages[2]) == {"parents": list(CHILD.parents), "moves": list(CHILD.moves)}


def test_candidates_are_of_one_task_in_the_order_in_which_they_were_chosen(store: RunStore) -> None:
    chosen = [candidate(sample_index=index, task_index=task) for index, task in ((3, 0), (1, 0), (2, 1), (0, 0))]
    for one in chosen:
        store.keep_schedule(one, TEXT)
    assert store.database.candidates(0) == [one for one in chosen if one.task_index == 0]
    assert store.database.candidates(1) == [chosen[2]]
    assert store.database.known_schedules(0) == {one.schedule_sha256 for one in chosen if one.task_index == 0}


def test_a_timing_has_its_candidates_parents_and_moves(store: RunStore) -> None:
    kept = store.keep_schedule(candidate(), TEXT)
    measurement = Measurement(kept.symbol, "board", Clock.WALL, (0.002,), "time", True)
    store.database.add_measurement(measurement, "sample", 0.1)
    (measured,) = store.database.measured()
    assert measured.candidate == kept and measured.median_ms == pytest.approx(2.0)


def test_a_damaged_lineage_is_a_damaged_folder(store: RunStore) -> None:
    kept = store.keep_schedule(candidate(), TEXT)
    with contextlib.closing(sqlite3.connect(store.folder / "tuning.db")) as connection:
        connection.execute("UPDATE candidates SET lineage = 'nothing'")
        connection.commit()
    with pytest.raises(RunFolderError):
        store.database.candidate(kept.symbol)


def test_the_header_is_kept_before_anything_is_built(store: RunStore) -> None:
    kept = store.keep_schedule(candidate(), TEXT)
    path = store.schedule_path(store.samples / kept.sample)
    assert path == store.samples / "batch_2_0" / "0" / "blur.schedule.h"
    assert path.read_text() == TEXT and store.result_path(path.parent) == path


def test_what_was_built_from_data_keeps_its_header(store: RunStore) -> None:
    kept = store.keep_schedule(candidate(), TEXT)
    built = make_object(store, "built.o")
    result = store.keep_build(kept, BuiltObject(kept.symbol, built, None, 1.5))
    assert result.kernel.object_path == store.object_path(kept.symbol)
    assert store.object_path(kept.symbol).read_bytes() == b"code" and not built.exists()
    assert store.schedule_path(store.samples / kept.sample).read_text() == TEXT
    assert store.database.build_times_s() == {kept.symbol: 1.5}


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_loop_nest_that_came_with_the_code_is_kept(store: RunStore, is_damaged: bool) -> None:
    kept = store.keep_schedule(candidate(), TEXT)
    nest = LoopNest(VERSION, 32, Loop("", "", "root", 1.0, 0, (), (), ()))
    written = store.work / "schedule.nest"
    written.write_text("{" if is_damaged else print_loop_nest(nest))
    store.keep_build(kept, BuiltObject(kept.symbol, make_object(store, "built.o"), None, 1.5, written))
    path = store.lowered_path(store.samples / kept.sample)
    assert not path.exists() if is_damaged else read_lowered(path) == nest
    assert not written.exists(), "it is many times as large"


def test_a_searched_schedule_without_a_new_header_keeps_what_it_has(store: RunStore) -> None:
    """As one that was rebuilt."""
    searched = candidate(SearchPoint(Origin.RANDOM, 3, 1, 5, store.default_weights))
    header = store.work / "emitted.h"
    header.write_text(TEXT.replace("apply_schedule_blur", "apply_schedule_other"))
    first = BuiltObject(searched.symbol, make_object(store, "a.o"), header, 1.0)
    store.keep_build(searched, first)
    path = store.schedule_path(store.samples / searched.sample)
    assert "apply_schedule_blur(" in path.read_text()
    before = path.read_text()
    store.keep_build(searched, BuiltObject(searched.symbol, make_object(store, "b.o"), None, 1.0))
    assert path.read_text() == before


def make_object(store: RunStore, name: str) -> Path:
    path = store.work / name
    path.write_bytes(b"code")
    return path


# What a killed process took with it


def rebuilt(store: RunStore, kept: Candidate, answer: object) -> tuple[object, list[BuildWithHeader]]:
    asked: list[BuildWithHeader] = []

    def script(task: Task[Any]) -> object:
        assert isinstance(task, BuildWithHeader), "there is no search to repeat"
        asked.append(task)
        return answer

    with contextlib.closing(ScriptedExecutor(script)) as executor:
        return rebuild(executor, store, kept), asked


def test_a_lost_object_is_built_again_from_the_header(store: RunStore) -> None:
    kept = store.keep_schedule(candidate(SchedulePoint(Origin.EVOLUTION, values={"unroll": "4"})), TEXT)
    made = make_object(store, "again.o")
    result, (task,) = rebuilt(store, kept, BuiltObject(kept.symbol, made, None, 1.0))
    assert not isinstance(result, GeneratorFailure)
    # It is told apart above.
    assert result.candidate == kept and result.kernel.object_path == made  # type: ignore[attr-defined]
    assert task.header_text == TEXT and task.symbol == kept.symbol and dict(task.values) == {"unroll": "4"}
    assert task.output_folder == store.objects / kept.symbol


@pytest.mark.parametrize("lost", ["gone", "empty"])
def test_without_its_header_it_is_a_failure_and_nothing_is_built(store: RunStore, lost: str) -> None:
    kept = store.keep_schedule(candidate(), TEXT)
    path = store.schedule_path(store.samples / kept.sample)
    if lost == "gone":
        path.unlink()
    else:
        path.write_text("")
    result, asked = rebuilt(store, kept, None)
    assert isinstance(result, GeneratorFailure) and not asked
    assert result.reason is GeneratorFailureReason.FAILED
    assert result.message == "The schedule of batch_2_0/0 is missing or damaged."


def test_a_header_that_cannot_be_built_says_why(store: RunStore) -> None:
    kept = store.keep_schedule(candidate(), TEXT)
    why = GeneratorFailure(GeneratorFailureReason.TIMED_OUT, "It did not end within 20 s.", "", 20.0)
    assert rebuilt(store, kept, why)[0] == why
    damaged, _ = rebuilt(store, kept, GeneratorError("The header does not compile."))
    assert isinstance(damaged, GeneratorFailure) and "missing or damaged" in damaged.message
