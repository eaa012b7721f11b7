"""A run lowers each schedule once, keeps its loop nest, and goes on without where that fails."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.events import Event, Notice
from halide_autotune.autotune_loop.execute.tasks.schedule_tasks import LowerSchedules
from halide_autotune.autotune_loop.lowered.lowered_file import pack_lowered, read_lowered
from halide_autotune.autotune_loop.lowered.lowered_schedule import lowered_schedule
from halide_autotune.autotune_loop.search.lowering import TaskLowering
from halide_autotune.targets.errors import GeneratorError, RunFolderError, ToolchainError
from halide_autotune.targets.generator.run import GeneratorFailure, GeneratorFailureReason
from halide_autotune.targets.lowering.loop_nest import VERSION, Loop, LoopNest
from halide_autotune.targets.lowering.lower import Lowered, Refused
from tests.scripted_executor import ScriptedExecutor

DRAFTS = [Draft({str(number): cast(Any, None)}) for number in range(30)]


def text_of(draft: Draft) -> str:
    return f"schedule {next(iter(draft.funcs))}"


def sha256(draft: Draft) -> str:
    return hashlib.sha256(text_of(draft).encode()).hexdigest()


def nest(text: str) -> LoopNest:
    return LoopNest(VERSION, 32, Loop("", "", "root", 1.0, int(text.split()[1]), (), (), ()))


@dataclass
class Setting:
    lowering: TaskLowering
    asked: list[LowerSchedules]
    heard: list[Event] = field(default_factory=list)


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Setting]:
    """Makes a task's lowering; `answer` gives what a task of these schedules comes to."""

    def setting(
        answer: Callable[[LowerSchedules], object] | None = None, build_slots: int = 1, trial_s: float = 1.0
    ) -> Setting:
        asked: list[LowerSchedules] = []

        def script(task: Any) -> object:
            asked.append(task)
            return answer(task) if answer else Lowered(tuple(map(nest, task.schedules_json)), 0.0)

        executor = ScriptedExecutor(script)
        executor.build_slots = build_slots
        pace = SimpleNamespace(
            executor=executor,
            context=SimpleNamespace(parallelism=4, workspace=SimpleNamespace(work_folder=tmp_path / "work")),
            limit_s=lambda task_index: 7.0,
            trial_s=lambda task_index: trial_s,
        )
        heard: list[Event] = []
        lowering = TaskLowering(cast(Any, pace), 0, text_of, heard.append)
        return Setting(lowering, asked, heard)

    return setting


def test_each_is_lowered_once(make: Callable[..., Setting]) -> None:
    run = make()
    found = run.lowering.lowered([*DRAFTS[:5], DRAFTS[0]])
    assert found == [lowered_schedule(nest(text_of(draft)), 4) for draft in [*DRAFTS[:5], DRAFTS[0]]]
    assert run.lowering.lowered(DRAFTS[3:6]) is not None
    assert [len(task.schedules_json) for task in run.asked] == [5, 1]
    assert {task.limit_s for task in run.asked} == {7.0}
    assert len({task.output_folder for task in run.asked}) == 2


@pytest.mark.parametrize(("count", "slots", "sizes"), [(9, 3, [1, 4, 4]), (30, 4, [6, 8, 8, 8]), (30, 1, [30])])
def test_many_are_lowered_in_all_build_slots(
    make: Callable[..., Setting], count: int, slots: int, sizes: list[int]
) -> None:
    run = make(build_slots=slots)
    found = run.lowering.lowered(DRAFTS[:count])
    assert found is not None and None not in found
    assert sorted(len(task.schedules_json) for task in run.asked) == sizes


def test_what_takes_long_to_lower_is_divided_among_all_slots(make: Callable[..., Setting]) -> None:
    def slowly(task: LowerSchedules) -> object:
        return Lowered(tuple(map(nest, task.schedules_json)), 0.5 * len(task.schedules_json))

    run = make(slowly, build_slots=2)
    run.lowering.lowered(DRAFTS[:4])
    run.lowering.lowered(DRAFTS[4:8])
    assert [len(task.schedules_json) for task in run.asked] == [4, 2, 2]


def test_lowering_may_take_half_of_what_a_trial_takes(make: Callable[..., Setting]) -> None:
    def slowly(task: LowerSchedules) -> object:
        count = len(task.schedules_json)
        return Lowered(tuple(map(nest, task.schedules_json)), 1.0 * count)  # a second each

    quick, slow, hopeless = (make(slowly, trial_s=trial_s) for trial_s in (9.0, 3.0, 1.0))
    beside = make(slowly, build_slots=2, trial_s=3.0)
    assert slow.lowering.affordable(10) == 20, "nothing is known"
    for run in (quick, slow, hopeless, beside):
        run.lowering.lowered(DRAFTS[:10])
    assert [run.lowering.affordable(10) for run in (quick, slow, hopeless, beside)] == [30, 15, 5, 30]


def test_what_halide_refuses_has_no_features_and_is_not_tried_again(make: Callable[..., Setting]) -> None:
    run = make(lambda task: Lowered((nest(task.schedules_json[0]), Refused("No.")), 0.0))
    for _ in range(2):
        found = run.lowering.lowered(DRAFTS[:2])
        assert found is not None and found[0] is not None and found[1] is None
    assert len(run.asked) == 1
    assert not run.heard


def test_a_kept_nest_is_read_and_not_lowered_again(make: Callable[..., Setting], tmp_path: Path) -> None:
    paths = [tmp_path / f"{place}.lowered" for place in range(3)]
    first = make()
    first.lowering.keep(sha256(DRAFTS[0]), paths[0])
    first.lowering.lowered(DRAFTS[:2])
    first.lowering.keep(sha256(DRAFTS[1]), paths[1])
    assert [read_lowered(path) for path in paths[:2]] == [nest(text_of(draft)) for draft in DRAFTS[:2]]
    again = make()
    paths[2].write_bytes(pack_lowered(nest(text_of(DRAFTS[2])))[:-9])
    for draft, path in zip(DRAFTS[:3], paths, strict=True):
        again.lowering.keep(sha256(draft), path)
    assert again.lowering.lowered(DRAFTS[:3]) == make().lowering.lowered(DRAFTS[:3])
    assert [task.schedules_json for task in again.asked] == [(text_of(DRAFTS[2]),)], "its file was damaged"
    assert read_lowered(paths[2]) == nest(text_of(DRAFTS[2]))


FAILED = GeneratorFailure(GeneratorFailureReason.CRASHED, "It crashed.", "", 0.1)


@pytest.mark.parametrize("failure", [FAILED, ToolchainError("It crashed.")])
def test_a_failure_is_told_once_and_ends_it(make: Callable[..., Setting], failure: object) -> None:
    run = make(lambda task: failure)
    assert run.lowering.lowered(DRAFTS[:2]) is None
    assert run.lowering.lowered(DRAFTS) is None
    assert len(run.asked) == 1
    text = "Schedules are chosen without lowering them, because that failed: It crashed."
    assert run.heard == [Notice(text, warning=True)]


def test_a_run_that_is_stopped_says_nothing(make: Callable[..., Setting]) -> None:
    run = make(lambda task: replace(FAILED, reason=GeneratorFailureReason.STOPPED))
    assert run.lowering.lowered(DRAFTS[:2]) == [None, None]
    assert not run.heard


def test_a_file_of_another_version_or_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.lowered"
    path.write_bytes(pack_lowered(replace(nest("a 1"), version=VERSION + 1)))
    with pytest.raises(GeneratorError, match="version"):
        read_lowered(path)
    path.write_bytes(b"no gzip")
    with pytest.raises(GeneratorError, match="a.lowered: the file is damaged"):
        read_lowered(path)
    monkeypatch.setattr("halide_autotune.autotune_loop.lowered.lowered_file._MOST_BYTES", 5)
    path.write_bytes(pack_lowered(nest("a 1")))
    with pytest.raises(GeneratorError, match="more than 5 bytes"):
        read_lowered(path)
    with pytest.raises(FileNotFoundError):
        read_lowered(tmp_path / "b.lowered")


def test_a_full_disk_is_one_sentence(make: Callable[..., Setting], tmp_path: Path) -> None:
    run = make()
    run.lowering.lowered(DRAFTS[:1])
    with pytest.raises(RunFolderError, match="no_folder/a.lowered cannot be written"):
        run.lowering.keep(sha256(DRAFTS[0]), tmp_path / "no_folder" / "a.lowered")
