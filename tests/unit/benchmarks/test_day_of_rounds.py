"""What is looked at in a day of rounds, and what counts as growth."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.day_of_rounds import Footprint, day, growth, is_flat
from benchmarks.waiting_farm import stand_in
from halide_autotune.autotune_loop.execute.tasks.measure_tasks import Measure, OpenDevice


def test_each_round_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for task in (Measure, OpenDevice):
        monkeypatch.setattr(task, "run", task.run)  # put back afterwards
    stand_in()
    found = day(tmp_path, 4)
    assert len(found) == 4
    assert all(one.temporary_files == 0 and one.open_files > 3 and one.threads >= 1 for one in found)
    assert sum(one.database_bytes for one in found) > 0


@pytest.mark.parametrize("name", ["memory_bytes", "open_files", "threads", "temporary_files", "database_bytes"])
def test_what_grows_with_each_round_is_not_flat(name: str) -> None:
    flat = {"memory_bytes": 1e8, "open_files": 20.0, "threads": 9.0, "temporary_files": 0.0, "database_bytes": 9000.0}
    even = [Footprint(**flat) for _ in range(100)]
    assert all(is_flat(one, *pair) for one, pair in growth(even).items())
    growing = [Footprint(**{**flat, name: flat[name] * (1 + at / 100) + at}) for at in range(100)]
    assert [one for one, pair in growth(growing).items() if not is_flat(one, *pair)] == [name]
