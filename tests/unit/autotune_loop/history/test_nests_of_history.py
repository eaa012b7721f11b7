"""The history keeps the loop nests of what was timed: what other pipelines have taught."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.history.history import History, NestLimits
from halide_autotune.autotune_loop.history.known_schedule import KnownSchedule, threads_text
from tests.known_schedules import TARGET, known

THREADS = threads_text(4)
LIMITS = NestLimits(most_pipelines=3, most_each=10, fewest_each=2)


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "history.sqlite3")


def fill(history: History, pipeline: str, count: int = 3, **changed: object) -> list[KnownSchedule]:
    """So many schedules of a pipeline with their loop nests."""
    as_timed = pipeline * 64
    schedules = [known(float(ms), f"{pipeline}{ms}", as_timed=as_timed, **changed) for ms in range(1, count + 1)]
    history.add(schedules, {one.nest_key: f"{pipeline}{one.time_ms}".encode() for one in schedules})
    return schedules


def asked(history: History, halide_target: str = TARGET, threads: str = THREADS) -> list[set[tuple[bytes, float]]]:
    return [{*group} for group in history.nests(halide_target, threads, LIMITS)]


def test_they_come_pipeline_by_pipeline_the_newest_first(history: History) -> None:
    assert asked(history) == []
    fill(history, "a", at_unix_s=1.0)
    fill(history, "b", 2, at_unix_s=2.0)
    assert asked(history) == [{(b"b1.0", 1.0), (b"b2.0", 2.0)}, {(b"a1.0", 1.0), (b"a2.0", 2.0), (b"a3.0", 3.0)}]


def test_there_are_so_many_at_most_and_none_of_a_pipeline_with_few(history: History) -> None:
    for place, pipeline in enumerate("abcd"):
        fill(history, pipeline, 20, at_unix_s=float(place))
    fill(history, "e", 1, at_unix_s=9.0)
    assert [len(group) for group in asked(history)] == [10, 10, 10]
    assert {nest[:1] for group in asked(history) for nest, _ in group} == {b"b", b"c", b"d"}


def test_what_was_timed_elsewhere_is_another_pipelines(history: History) -> None:
    fill(history, "a", device="pi4")
    fill(history, "a", device="pi5")
    assert len(asked(history)) == 2
    fill(history, "b", halide_target="arm-64-android")
    assert len(asked(history)) == 3


def test_other_kinds_of_processors_and_other_threads_do_not_count(history: History) -> None:
    fill(history, "a", halide_target="x86-64-linux")
    fill(history, "b", conditions="640x480, 2 threads")
    fill(history, "c", conditions="640x480, 14 threads")
    assert asked(history) == []
    assert len(asked(history, "x86-64-linux-avx2")) == 1
    assert len(asked(history, threads=threads_text(2))) == 1


def test_schedules_without_one_are_left_out(history: History) -> None:
    fill(history, "a", 2)
    history.add([known(9.0, as_timed="a" * 64)])
    assert asked(history) == [{(b"a1.0", 1.0), (b"a2.0", 2.0)}]


def test_what_is_deleted_takes_its_nest_along(history: History) -> None:
    fill(history, "a", 5)
    assert history.prune(keep=2) == 3
    with contextlib.closing(sqlite3.connect(history.file)) as connection:
        assert connection.execute("SELECT count(*) FROM loop_nests").fetchone() == (2,)


def test_a_history_without_nests_is_read_and_gets_them(history: History) -> None:
    """As an earlier version of the SDK has left it."""
    history.add([known(1.0)])
    with contextlib.closing(sqlite3.connect(history.file)) as connection:
        connection.execute("DROP TABLE loop_nests")
        connection.execute("PRAGMA user_version = 1")
    salt_before = sqlite3.connect(history.file)
    with contextlib.closing(salt_before) as connection:
        (salt,) = connection.execute("SELECT salt FROM salts").fetchone()
    assert asked(history) == [] and len(history.schedules()) == 1
    fill(history, "a", 2)
    assert len(asked(history)) == 1 and len(history.schedules()) == 3
    assert history.salt() == salt, "devices keep the names that they have in what was exported"


def test_a_schedule_has_a_nest_for_each_target(tmp_path: Path) -> None:
    """Vectors of another length are another nest, and its times are others."""
    history = History(tmp_path / "history.sqlite3")
    for target, time_ms in (("x86-64-linux-avx2", 1.0), ("arm-64-linux", 9.0)):
        one = known(time_ms, "one", halide_target=target, conditions=f"8x8, {THREADS}")
        history.add([one], {one.nest_key: target.encode()})
    limits = NestLimits(9, 9, 1)
    assert history.nests("x86-64-linux", THREADS, limits) == [[(b"x86-64-linux-avx2", 1.0)]]
    assert history.nests("arm-64-android", THREADS, limits) == [[(b"arm-64-linux", 9.0)]]


def test_nests_of_an_earlier_version_are_kept_where_they_are_of_one_target(tmp_path: Path) -> None:
    file = tmp_path / "history.sqlite3"
    history = History(file)
    both = [known(1.0, "both", halide_target=target, as_timed="b" * 64) for target in ("x86-64-linux", "arm-64-linux")]
    alone = known(2.0, "alone", halide_target="arm-64-linux", as_timed="a" * 64)
    history.add([*both, alone])
    with contextlib.closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DROP TABLE loop_nests")
        connection.execute("CREATE TABLE nests (as_timed TEXT, sha256 TEXT, nest BLOB, PRIMARY KEY (as_timed, sha256))")
        for one in (both[0], alone):
            connection.execute("INSERT INTO nests VALUES (?, ?, ?)", (one.as_timed, one.sha256, b"nest"))
        connection.execute("PRAGMA user_version = 2")
    assert history.all_nests() == {}, "until something is added"
    history.add([])
    assert history.all_nests() == {alone.nest_key: b"nest"}
