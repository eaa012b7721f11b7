"""What is used at each size is on record beside the header that it was decided for."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.store.published import ScheduleTime, SpeedUp
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.autotune_loop.store.size_schedules import GENERAL, SizeSchedule, read_size_schedules
from halide_autotune.targets.errors import RunFolderError
from tests.contract.writing_process import HEADER, RECORD

WON = SizeSchedule(
    "input=64x48",
    "input",
    "64x48",
    "batch_0_0/1",
    "blur_r0_a0_s1",
    "best.blur.at_64x48.schedule.h",
    "0" * 64,
    "It is faster.",
    tuned=ScheduleTime(1.0, 0.1, (0.9, 1.1), 8),
    speed_up=SpeedUp(1.2, GENERAL, 1.15, 1.25),
)
KEPT = SizeSchedule("input=640x480", "input", "640x480", "batch_0_0/2", "blur_r0_a0_s2", "", "", "Nothing is faster.")


def read(folder: Path, sha256: str) -> tuple[SizeSchedule, ...]:
    path = folder / "run" / "tuning.db"
    with closing(sqlite3.connect(path)) as connection:
        return read_size_schedules(connection, path, 0, sha256)


def test_what_was_decided_last_beside_a_header_counts(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "run", RECORD, resume=False)
    assert read(tmp_path, "general") == ()
    header = tmp_path / "made.schedule.h"
    header.write_text(HEADER.format(body=""))
    name, text = store.size_header(0, "64x48", header)
    assert name == WON.header and "apply_schedule_blur_at_64x48(" in text
    store.publish_for_sizes(0, "older", [WON], {"best.blur.at_1x1.schedule.h": text})
    store.publish_for_sizes(0, "general", [WON, KEPT], {name: text})
    store.close()
    assert read(tmp_path, "general") == (WON, KEPT) and read(tmp_path, "older") == (WON,)
    assert [path.name for path in store.samples.glob("best.*")] == [name]
    assert (WON.is_own, KEPT.is_own) == (True, False)
    assert WON.to_dict()["speed_up_low"] == 1.15 and KEPT.to_dict()["header"] is None


def test_a_damaged_row_is_told(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "run", RECORD, resume=False)
    store.publish_for_sizes(0, "general", [KEPT], {})
    store.close()
    with closing(sqlite3.connect(tmp_path / "run" / "tuning.db")) as connection:
        connection.execute("UPDATE size_schedules SET schedules='{\"schedules\": 3}'")
        connection.commit()
    with pytest.raises(RunFolderError, match="is damaged"):
        read(tmp_path, "general")
