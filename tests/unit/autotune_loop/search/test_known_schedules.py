"""What a run knows of its pipelines from earlier runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from halide_autotune.autotune_loop.events import Event, Notice
from halide_autotune.autotune_loop.history.history import History
from halide_autotune.autotune_loop.history.pipeline_identity import identity_of
from halide_autotune.autotune_loop.search.known_schedules import KnownSchedules, known_pipelines
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.devices.device import Clock
from halide_autotune.targets.errors import RunFolderError
from tests.drafted_pipelines import recorded
from tests.known_schedules import PLACE, known

SHAPE = recorded("corner_detector").shape
IDENTITY = identity_of(SHAPE)
OF_IT = asdict(IDENTITY)


@pytest.fixture
def history(tmp_path: Path) -> History:
    made = History(tmp_path / "history.sqlite3")
    made.add([known(float(number), **OF_IT) for number in range(1, 9)])
    return made


def asked(folder: Path, history: History | None, also_sizes: Sequence[str] = ()) -> tuple[KnownSchedules, list[Event]]:
    heard: list[Event] = []
    folder.mkdir(exist_ok=True)
    profile = SimpleNamespace(halide_target=PLACE[0])
    run = SimpleNamespace(
        folder=folder,
        history=None if history is None else history.file,
        spec=SimpleNamespace(profile=profile),
        options=RunOptions.of(also_sizes=also_sizes),
        device_names=PLACE[1],
        clock=Clock.WALL,
    )
    return KnownSchedules(cast(Any, run), heard.append), heard


def test_the_best_are_told_and_kept(history: History, tmp_path: Path) -> None:
    schedules, heard = asked(tmp_path / "run", history)
    assert [one.time_ms for one in schedules.of(0, SHAPE)] == [1.0, 2.0, 3.0, 4.0]
    assert schedules.of(1, recorded("separable_filter").shape) == ()
    (notice,) = heard
    assert isinstance(notice, Notice) and "The 4 best schedules of earlier runs" in notice.text
    kept = known_pipelines(tmp_path / "run")
    assert kept[0].size == "1536x1024"
    assert kept[0].identity == IDENTITY and kept[0].schedules == schedules.of(0, SHAPE) and kept[1].schedules == ()


def test_schedules_of_other_sizes_are_told(tmp_path: Path) -> None:
    history = History(tmp_path / "history.sqlite3")
    history.add([known(1.0, **{**OF_IT, "at_its_size": "0" * 64})])
    schedules, heard = asked(tmp_path / "run", history)
    assert len(schedules.of(0, SHAPE)) == 1
    history.add([known(2.0, **OF_IT)])
    again, heard_again = asked(tmp_path / "again", history)
    assert [one.time_ms for one in again.of(0, SHAPE)] == [2.0, 1.0]
    told = [event.text for event in (*heard, *heard_again) if isinstance(event, Notice)]
    assert "The best schedule of earlier runs of this pipeline at other sizes will be tried" in told[0]
    assert "The 2 best schedules of earlier runs of this pipeline, 1 of them at other sizes, will" in told[1]


def test_a_mean_over_several_sizes_is_no_time_at_one(history: History, tmp_path: Path) -> None:
    schedules, heard = asked(tmp_path / "run", history, ["input=64x64"])
    assert len(schedules.of(0, SHAPE)) == 4
    (notice,) = heard
    assert isinstance(notice, Notice) and "at other sizes" in notice.text
    (kept,) = known_pipelines(tmp_path / "run").values()
    assert kept.size == "1536x1024 and 1 more" and kept.identity.at_any_size == IDENTITY.at_any_size


def test_a_resumed_run_has_what_it_had(history: History, tmp_path: Path) -> None:
    first, _ = asked(tmp_path / "run", history)
    before = first.of(0, SHAPE)
    history.add([known(0.1, **OF_IT)])
    resumed, heard = asked(tmp_path / "run", history)
    assert resumed.of(0, SHAPE) == before and heard == []


def test_without_a_history_the_pipeline_is_still_kept(tmp_path: Path) -> None:
    """Its schedules can be added later: sdk history add."""
    schedules, heard = asked(tmp_path / "run", None)
    assert schedules.of(0, SHAPE) == () and heard == []
    assert known_pipelines(tmp_path / "run")[0].identity == IDENTITY


def test_a_run_goes_on_without_a_damaged_history(history: History, tmp_path: Path) -> None:
    history.file.write_bytes(b"damaged" * 100)
    schedules, heard = asked(tmp_path / "run", history)
    assert schedules.of(0, SHAPE) == ()
    (notice,) = heard
    assert isinstance(notice, Notice) and notice.warning and "This run goes on without it." in notice.text


@pytest.mark.parametrize("text", ["", "[]", '{"version": 1, "pipelines": {"0": {"identity": 3}}}'])
def test_a_damaged_file_of_a_run_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "history.json").write_text(text)
    with pytest.raises(RunFolderError, match="history.json"):
        known_pipelines(tmp_path)
