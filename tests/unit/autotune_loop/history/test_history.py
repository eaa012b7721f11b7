"""The database of everything that was timed."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.history import history as history_module
from halide_autotune.autotune_loop.history.history import History
from halide_autotune.autotune_loop.history.pipeline_identity import PipelineIdentity
from halide_autotune.targets.errors import HistoryError
from tests.known_schedules import PIPELINE, PLACE, known


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "config" / "history.sqlite3")


def times_ms(history: History, count: int = 9, place: tuple[str, str, str] = PLACE) -> list[float]:
    return [one.time_ms for one in history.best(PIPELINE, place, count)]


def test_an_empty_history_makes_no_file(history: History) -> None:
    assert (history.best(PIPELINE, PLACE, 4), history.summary(), history.schedules(), history.prune(keep=1)) == (
        [],
        [],
        [],
        0,
    )
    assert not history.file.exists()


def test_the_fastest_of_a_pipeline_come_first(history: History) -> None:
    assert history.add([known(3.0), known(1.0), known(2.0), known(0.5, at_any_size="0" * 64)]) == 4
    assert times_ms(history) == [1.0, 2.0, 3.0] and times_ms(history, count=2) == [1.0, 2.0]
    assert history.best(PipelineIdentity("1" * 64, PIPELINE.as_timed), PLACE, 4) == []
    assert history.best(PIPELINE, PLACE, 1) == [known(1.0)]


def test_places_have_turns_and_this_one_the_first(history: History) -> None:
    """A time on a simulated clock, or of a faster board, says nothing about this one's."""
    history.add(
        [
            *(known(ms) for ms in (5.0, 6.0, 7.0)),
            *(known(ms, clock="simulated", at_unix_s=9_000.0) for ms in (0.1, 0.2)),
            known(0.3, halide_target="arm-64-android", at_unix_s=99_000.0),
            known(0.4, halide_target="x86-64-linux"),
        ]
    )
    assert times_ms(history) == [5.0, 0.1, 0.3, 6.0, 0.2, 7.0, 0.4]
    assert times_ms(history, place=("arm-64-linux", "other", "wall")) == [0.1, 5.0, 0.3, 0.2, 6.0, 7.0, 0.4]


def test_what_was_found_for_other_processors_comes_last(history: History) -> None:
    """A schedule of the laptop is a start for the board, if there is no better one; a DSP's is none."""
    larger = {"as_timed": "0" * 64}
    history.add(
        [
            known(5.0, **larger),
            known(1.0, halide_target="x86-64-linux-avx2"),
            known(2.0, halide_target="riscv-64-linux", **larger),
            known(3.0, halide_target="hexagon-32-noos-hvx"),
        ]
    )
    assert times_ms(history) == [5.0, 1.0, 2.0]
    assert times_ms(history, place=("x86-64-linux-avx2", "laptop", "wall")) in ([1.0, 2.0, 5.0], [1.0, 5.0, 2.0])
    assert times_ms(history, place=("hexagon-32-noos-hvx", "phone", "cycles")) == [3.0]


def test_what_was_timed_otherwise_comes_last(history: History) -> None:
    """A small picture's schedule is fast for the small picture, and one of many threads for many threads."""
    other = {"as_timed": "0" * 64}
    history.add([known(0.1, **other), known(0.2, **other), known(5.0), known(6.0, device="pi4")])
    assert times_ms(history) == [5.0, 6.0, 0.1, 0.2] and times_ms(history, count=3) == [5.0, 6.0, 0.1]


def test_a_schedule_of_two_places_is_tried_once(history: History) -> None:
    history.add([known(1.0, "same"), known(2.0), known(0.2, device="pi4"), known(0.3, "same", device="pi4")])
    assert times_ms(history) == [1.0, 0.2, 2.0]


def test_the_newest_time_of_a_schedule_counts(history: History) -> None:
    assert history.add([known(2.0, "same")]) == 1
    assert history.add([known(1.0, "same", at_unix_s=2_000.0), known(9.0, "same", at_unix_s=500.0)]) == 0
    assert times_ms(history) == [1.0]


def test_what_is_known_is_told_by_pipeline_and_place(history: History) -> None:
    blur = known(4.0, pipeline="blur", at_any_size="2" * 64, as_timed="3" * 64)
    history.add([known(2.0), known(1.0, at_unix_s=2_000.0), known(3.0, device="pi4"), blur])
    told = [(one.pipeline, one.device, one.schedules, one.best_ms, one.newest_unix_s) for one in history.summary()]
    assert told == [
        ("blur", "pi5", 1, 4.0, 1_000.0),
        ("harris", "pi5", 2, 1.0, 2_000.0),
        ("harris", "pi4", 1, 3.0, 1_000.0),
    ]
    assert history.schedules("blur") == [blur] and len(history.schedules()) == 4


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ({"keep": 1}, [1.0, 3.0]),
        ({"keep": 1, "pipeline": "blur"}, [1.0, 2.0, 3.0]),
        ({"since_unix_s": 1_500.0}, [1.0]),
        ({"keep": 0, "pipeline": "harris"}, []),
        ({}, [1.0, 2.0, 3.0]),
    ],
)
def test_pruning_keeps_the_fastest_of_each_place(history: History, asked: dict[str, object], left: list[float]) -> None:
    history.add([known(2.0), known(1.0, at_unix_s=2_000.0), known(3.0, device="pi4")])
    assert history.prune(**asked) == 3 - len(left)  # type: ignore[arg-type]  # options by name
    assert sorted(one.time_ms for one in history.schedules()) == left


def test_pruning_a_pipeline_compares_it_with_itself(history: History) -> None:
    """One that was copied under another name has the same identity."""
    history.add([known(1.0, pipeline="copied"), known(2.0), known(3.0)])
    assert history.prune(keep=1, pipeline="harris") == 1
    assert [one.time_ms for one in history.schedules("harris")] == [2.0]
    assert [(one.pipeline, one.schedules) for one in history.summary()] == [("copied", 1), ("harris", 1)]


def test_what_is_there_is_read_where_nothing_may_be_written(history: History) -> None:
    history.add([known(1.0)])
    history.file.parent.chmod(0o500)
    history.file.chmod(0o400)
    try:
        assert times_ms(history) == [1.0] and len(history.summary()) == 1
    finally:
        history.file.parent.chmod(0o700)


def test_reading_waits_for_no_writer_that_has_begun(history: History) -> None:
    history.add([known(1.0)])
    writer = sqlite3.connect(history.file, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    try:
        assert times_ms(history) == [1.0]
    finally:
        writer.close()


def test_an_empty_file_has_nothing_in_it(history: History) -> None:
    history.file.parent.mkdir()
    history.file.touch()
    assert (times_ms(history), history.summary(), history.schedules()) == ([], [], [])
    assert history.add([known(1.0)]) == 1


_ADDING = """
import sys
from pathlib import Path
from halide_autotune.autotune_loop.history.history import History
from tests.known_schedules import known
history = History(Path(sys.argv[1]))
for number in range(20):
    history.add([known(float(sys.argv[2]) + number)])
"""


def test_several_runs_add_at_the_same_time(history: History) -> None:
    root = Path(__file__).parents[4]
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _ADDING, str(history.file), str(1000 * number + 1)],
            cwd=root,
            env={"PYTHONPATH": f"{root / 'src'}:{root}"},
        )
        for number in range(3)
    ]
    assert [writer.wait(120) for writer in writers] == [0, 0, 0]
    assert len(history.schedules()) == 60


def test_a_writer_that_is_killed_leaves_what_was_there(history: History) -> None:
    history.add([known(1.0)])

    def cut() -> object:
        yield known(2.0)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        history.add(cut())  # type: ignore[arg-type]  # a generator, which ends in the middle
    assert times_ms(history) == [1.0]


@pytest.mark.parametrize("damage", [b"nothing of this kind" * 100, b"SQLite format 3\0" + b"\xff" * 4_000])
def test_a_damaged_file_is_one_error(history: History, damage: bytes) -> None:
    history.add([known(1.0)])
    history.file.write_bytes(damage)
    for use in (lambda: history.add([known(2.0)]), lambda: history.best(PIPELINE, PLACE, 1), history.summary):
        with pytest.raises(HistoryError, match="is damaged") as caught:
            use()
        assert "sdk history add RUN" in caught.value.next_step


def test_a_row_that_cannot_be_unpacked_is_damage(history: History) -> None:
    history.add([known(1.0)])
    with sqlite3.connect(history.file) as connection:
        connection.execute("UPDATE schedules SET schedule = x'00'")
    connection.close()
    with pytest.raises(HistoryError, match="is damaged"):
        history.best(PIPELINE, PLACE, 1)


def test_a_newer_history_is_left_alone(history: History) -> None:
    history.add([known(1.0)])
    with sqlite3.connect(history.file) as connection:
        connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(HistoryError, match="by a newer version of the SDK") as caught:
        history.add([known(2.0)])
    assert "--no-history" in caught.value.next_step


def test_a_history_that_others_hold_is_told(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    history.add([known(1.0)])
    monkeypatch.setattr(history_module, "_PATIENCE_S", 0.01)
    holder = sqlite3.connect(history.file, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(HistoryError, match="is in use"):
            history.add([known(2.0)])
    finally:
        holder.close()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HistoryError, match="cannot be made"):
        History(tmp_path / "file" / "history.sqlite3").add([known(1.0)])
