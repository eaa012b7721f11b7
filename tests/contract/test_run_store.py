"""What the run folder promises: nothing committed is ever lost, and every trouble is one message."""

from __future__ import annotations

import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.events import SampleFailed
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.store.published import NOTHING, read_published
from halide_autotune.autotune_loop.store.run_database import RunDatabase
from halide_autotune.autotune_loop.store.run_record import read_run_record
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.targets.errors import RunFolderError
from halide_autotune.targets.process.content_cache import file_sha256
from tests.contract.writing_process import HEADER, RECORD, candidate, measurement, symbol
from tests.run_specs import make_record, make_spec, make_task
from tests.small_file_system import small_file_system

PROJECT = Path(__file__).parents[2]
KILLS = 10


def start_writer(folder: Path, round_index: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.contract.writing_process", str(folder), str(round_index)]
    writer = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None and writer.stdout.readline() == "open\n"
    return writer


def kill(writer: subprocess.Popen[str]) -> list[str]:
    """Kill it; returns what it had said by then."""
    os.kill(writer.pid, signal.SIGKILL)
    said, _ = writer.communicate()
    return [line for line in said.splitlines(keepends=True) if line.endswith("\n")]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    made = RunStore(tmp_path / "run", RECORD, resume=False)
    yield made
    made.close()


def fill(store: RunStore, count: int) -> None:
    for index in range(count):
        store.database.add_candidate(candidate(store.candidate_folder(0, 0, index), 0, index))
        store.database.add_measurement(measurement(symbol(0, index), 1e-3), "sample", 0.1)
    store.database.add_batch(0, 0, {"measure": 1.5})
    store.database.add_failure(SampleFailed(0, 0, None, "search", "crashed", "It died."), "log")


def read_everything(database: RunDatabase) -> None:
    database.measured()
    database.unfinished()
    database.next_round()
    database.known_schedules(0)
    database.failure_counts()
    database.last_failure(0)
    database.stage_totals_s()


@pytest.mark.toolchain
def test_what_was_committed_survives_kills_at_random_moments(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    source = random.Random(7)
    said: Counter[tuple[str, str]] = Counter()
    for round_index in range(KILLS):
        writer = start_writer(folder, round_index)
        if round_index == KILLS - 1:
            # The last one gets as far as its second schedule: then there is a best one, and this round.
            assert writer.stdout is not None
            early = [writer.stdout.readline() for _ in range(3)]
            assert early[0].startswith("candidate") and early[2].startswith("candidate")
            said.update((kind, name) for kind, name in map(str.split, early))
        time.sleep(source.uniform(0.0, 0.25))
        for line in kill(writer):
            what, kernel = line.split()
            said[what, kernel] += 1
    assert set(said.values()) == {1}
    store = RunStore(folder, RECORD, resume=True)
    try:
        timed = Counter(row.candidate.symbol for row in store.database.measured())
        unfinished = Counter(kernel for kernel, _, _ in store.database.unfinished())
        assert set(timed.values()) == {1} and not set(timed) & set(unfinished)
        assert {kernel for what, kernel in said if what == "measured"} <= set(timed)
        assert {kernel for what, kernel in said if what == "candidate"} <= set(timed) | set(unfinished)
        # What was committed and not said any more: one thing for every kill at most.
        assert len(timed) + len(unfinished) <= sum(what == "candidate" for what, _ in said) + KILLS
        assert store.database.next_round() == KILLS
        assert all(row.median_ms > 0 and row.clock == "wall" for row in store.database.measured())
        header = store.best_schedule(0).read_text()
        assert header.startswith("#ifndef") and header.endswith("#endif  // blur_SCHEDULE_H\n")
        with closing(sqlite3.connect(folder / "tuning.db")) as connection:
            sha256 = file_sha256(store.best_schedule(0))
            published = read_published(connection, folder / "tuning.db", 0, sha256)
        assert published is not None and published.symbol in timed, "a header without its figures"
        assert not list(store.work.iterdir())
    finally:
        store.close()


def test_a_folder_belongs_to_one_process_until_it_ends(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    writer = start_writer(folder, 0)
    try:
        for resume in (True, False):
            with pytest.raises(RunFolderError, match=f"{folder} is in use by another process") as caught:
                RunStore(folder, RECORD, resume=resume)
            assert caught.value.next_step
    finally:
        kill(writer)
    RunStore(folder, RECORD, resume=True).close()


def test_a_folder_is_held_once_in_one_process_too(store: RunStore) -> None:
    with pytest.raises(RunFolderError, match="in use"):
        RunStore(store.folder, RECORD, resume=True)


@pytest.mark.parametrize("resume", [False, True])
def test_a_file_is_no_run_folder(tmp_path: Path, resume: bool) -> None:
    (tmp_path / "run").write_text("mine")
    with pytest.raises(RunFolderError, match=r"run is a file, not a folder\.") as told:
        RunStore(tmp_path / "run", RECORD, resume=resume)
    assert told.value.next_step == "Choose another --run-dir." and (tmp_path / "run").read_text() == "mine"


def test_a_run_is_not_overwritten(store: RunStore) -> None:
    fill(store, 3)
    store.close()
    with pytest.raises(RunFolderError, match="already has a run") as caught:
        RunStore(store.folder, RECORD, resume=False)
    assert "--resume" in caught.value.next_step
    again = RunStore(store.folder, RECORD, resume=True)
    assert len(again.database.measured()) == 3
    again.close()


@pytest.mark.parametrize("make", ["nothing", "folder"])
def test_where_there_is_no_run_there_is_nothing_to_resume(tmp_path: Path, make: str) -> None:
    folder = tmp_path / "run"
    if make == "folder":
        folder.mkdir()
    with pytest.raises(RunFolderError, match="has no run to resume"):
        RunStore(folder, RECORD, resume=True)
    assert not folder.exists() or not list(folder.iterdir())


def test_a_resume_with_another_identity_names_every_difference(store: RunStore) -> None:
    store.close()
    options = RunOptions.of(seed=7, rounds=500)
    other = make_record(make_spec(make_task("harris"), options=options), halide_version="22")
    with pytest.raises(RunFolderError) as caught:
        RunStore(store.folder, other, resume=True)
    lines = caught.value.message.splitlines()[1:]
    assert lines == [
        "  generators: the run has python blur as blur, now python harris as harris",
        "  halide_version: the run has 21.0.0, now 22",
        "  seed: the run has --seed 0, now --seed 7",
    ]
    more = make_record(make_spec(options=RunOptions.of(rounds=500)))
    RunStore(store.folder, more, resume=True).close()
    assert read_run_record(store.folder) == more, "what may change is what the run is asked from then on"


def test_a_run_of_an_older_version_is_refused(store: RunStore) -> None:
    store.close()
    (store.folder / "run.toml").write_text("[identity]\ngenerator = 'blur'\n[settings]\nrounds = '9'\n")
    with pytest.raises(RunFolderError, match="an earlier version of the SDK") as caught:
        RunStore(store.folder, RECORD, resume=True)
    assert "start a new run" in caught.value.next_step


@pytest.mark.parametrize(
    "content",
    [b"", b"[identity]\n", b"identity = 3\nsettings = 4\n", b"\xff\xfe", b"[identity", b"\0" * 50, b"[[identity]]\n"],
)
def test_a_damaged_record_is_one_message(store: RunStore, content: bytes) -> None:
    store.close()
    (store.folder / "run.toml").write_bytes(content)
    with pytest.raises(RunFolderError, match="run.toml is damaged") as caught:
        RunStore(store.folder, RECORD, resume=True)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("resume", [True, False])
def test_a_lost_record_is_one_message(store: RunStore, resume: bool) -> None:
    fill(store, 1)
    store.close()
    (store.folder / "run.toml").unlink()
    with pytest.raises(RunFolderError, match="is damaged: run.toml is missing"):
        RunStore(store.folder, RECORD, resume=resume)


@pytest.mark.parametrize("content", [b"no database " * 100, b"SQLite format 3\0" + b"\xff" * 5000, b"\0" * 4096])
def test_a_file_that_is_no_database_is_one_message(store: RunStore, content: bytes) -> None:
    store.close()
    for path in store.folder.glob("tuning.db*"):
        path.unlink()
    (store.folder / "tuning.db").write_bytes(content)
    with pytest.raises(RunFolderError, match="tuning.db cannot be used") as caught:
        RunStore(store.folder, RECORD, resume=True)
    assert caught.value.next_step and "\n" not in str(caught.value)
    # The folder is let go again.
    with pytest.raises(RunFolderError, match="tuning.db cannot be used"):
        RunStore(store.folder, RECORD, resume=True)


@pytest.mark.parametrize("damage", ["missing", "empty", "a table"])
def test_a_lost_database_is_not_begun_anew_over_the_samples(store: RunStore, damage: str) -> None:
    fill(store, 2)
    sample = store.sample_path(store.candidate_folder(0, 0, 0))
    sample.parent.mkdir(parents=True)
    sample.write_bytes(b"timed")
    store.close()
    path = store.folder / "tuning.db"
    if damage == "a table":
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("DROP TABLE measurements")
    else:
        path.unlink()
        if damage == "empty":
            path.touch()
    for _ in range(2):
        with pytest.raises(RunFolderError, match="tuning.db is (missing|damaged)") as caught:
            RunStore(store.folder, RECORD, resume=True)
        assert "sdk retrain" in caught.value.next_step and "\n" not in str(caught.value)
    assert sample.read_bytes() == b"timed"


def test_a_database_of_another_layout_is_refused(store: RunStore) -> None:
    store.close()
    with sqlite3.connect(store.folder / "tuning.db") as connection:
        connection.execute("PRAGMA user_version=77")
    connection.close()
    with pytest.raises(RunFolderError, match="schema version 77; this SDK reads version [0-9]+"):
        RunStore(store.folder, RECORD, resume=True)


def test_a_database_that_is_damaged_anywhere_reads_or_is_one_message(store: RunStore) -> None:
    fill(store, 40)
    store.close()
    path = store.folder / "tuning.db"
    good = path.read_bytes()
    source = random.Random(3)
    for _ in range(120):
        bad = bytearray(good[: source.choice([len(good), len(good), source.randrange(len(good))])])
        for _ in range(source.choice([1, 3, 200])):
            if bad:
                bad[source.randrange(len(bad))] = source.randrange(256)
        path.write_bytes(bad)
        try:
            database = RunDatabase(path)
        except RunFolderError:
            continue
        try:
            read_everything(database)
        except RunFolderError as error:
            assert str(path) in str(error)
        finally:
            database.close()


def limit_file_size() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))


def test_a_limit_on_file_sizes_is_one_message(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.contract.writing_process", str(tmp_path / "run"), "0"]
    done = subprocess.run(
        command, cwd=PROJECT, capture_output=True, text=True, preexec_fn=limit_file_size, timeout=240, check=False
    )
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("halide_autotune.targets.errors.RunFolderError: ") and "Free disk space" in last


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with small_file_system(tmp_path / "small", megabytes=1) as folder:
        yield folder


def test_a_full_disk_is_one_message_and_loses_nothing(small_disk: Path, tmp_path: Path) -> None:
    folder = small_disk / "run"
    store = RunStore(folder, RECORD, resume=False)
    committed = 0
    with pytest.raises(RunFolderError, match="Free disk space"):
        for index in range(10_000):
            store.database.add_candidate(candidate(folder, 0, index))
            store.database.add_measurement(measurement(symbol(0, index), 1e-3), "sample", 0.1)
            committed += 1
    filling = small_disk / "filling"
    with pytest.raises(OSError, match="No space"), filling.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(512))
    header = tmp_path / "emitted.schedule.h"
    header.write_text(HEADER.format(body="    // filling\n" * 2000))
    with pytest.raises(RunFolderError, match="Free disk space"):
        store.publish(0, header, NOTHING, "wall")
    assert not store.best_schedule(0).exists()
    store.close()
    filling.unlink()
    subprocess.run(["mount", "-o", "remount,size=8m", str(small_disk)], check=True)
    again = RunStore(folder, RECORD, resume=True)
    assert len(again.database.measured()) == committed > 10
    again.database.add_candidate(candidate(folder, 1, 0))
    again.close()


def test_a_folder_that_cannot_be_made_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunFolderError, match="run cannot be created: Not a directory"):
        RunStore(tmp_path / "file" / "run", RECORD, resume=False)
