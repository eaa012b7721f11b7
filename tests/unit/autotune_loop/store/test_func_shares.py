"""Where schedules' time goes is kept with the run; a run of before has no such table, and reads as if nobody looked."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.store.run_database import RunDatabase
from halide_autotune.targets.errors import RunFolderError


def test_shares_are_read_back_and_the_newest_of_a_schedule_counts(tmp_path: Path) -> None:
    with contextlib.closing(RunDatabase(tmp_path / "tuning.db")) as database:
        assert database.func_shares() == {}
        database.add_func_shares("a", {"blur": 0.5})
        database.add_func_shares("b", {})
        database.add_func_shares("a", {"blur": 0.25, "out$1": 0.75})
    with contextlib.closing(RunDatabase(tmp_path / "tuning.db")) as database:
        assert database.func_shares() == {"a": {"blur": 0.25, "out$1": 0.75}, "b": {}}


def test_damage_is_told(tmp_path: Path) -> None:
    with contextlib.closing(RunDatabase(tmp_path / "tuning.db")) as database:
        database.add_func_shares("a", {"blur": 0.5})
        database._rows("UPDATE func_shares SET shares = '[0.5]'")
        with pytest.raises(RunFolderError, match="cannot be used"):
            database.func_shares()
