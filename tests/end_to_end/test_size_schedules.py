"""Sizes with schedules of their own: decided by a run, shipped, and chosen by the size of each call."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from autotune_loop.report.recorded_run import read_recorded_run
from autotune_loop.run.decision import size_play_offs
from autotune_loop.run.result import TuneResult
from tests.end_to_end.conftest import SMALL, Tune
from tests.end_to_end.run_files import rows

MAIN, LARGER = "input=192x96x3 output=192x96x3", "input=384x192x3 output=384x192x3"


@pytest.fixture(scope="module")
def run(tune: Tune, examples: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TuneResult]:
    """Which schedule is fastest where is luck, so any is fast enough for a size of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(size_play_offs, "LEAST_SPEED_UP", 0.01)
        yield tune(
            str(examples / "separable_filter.py"),
            parameters=SMALL,
            also_sizes=["input=384x192x3"],
            technique=["sampling"],
            rounds=1,
            run_folder=tmp_path_factory.mktemp("size_schedules") / "run",
        )


def test_a_size_gets_the_schedule_that_wins_its_play_off(run: TuneResult) -> None:
    assert run.best.confirmed and run.best.header is not None
    own = run.best.size_schedules
    assert [one.size for one in own] == [MAIN, LARGER] and all(one.is_own for one in own)
    assert [(one.argument, one.extents) for one in own] == [("output", "192x96x3"), ("output", "384x192x3")]
    for one in own:
        assert one.symbol != run.best.published.symbol and one.tuned is not None and one.speed_up is not None
        assert " times as fast as the schedule for all sizes (95 % interval " in one.message
        header = run.best.header.with_name(one.header)
        assert one.header == f"best.separable_filter.at_{one.extents}.schedule.h"
        assert hashlib.sha256(header.read_bytes()).hexdigest() == one.header_sha256
        assert f"apply_schedule_separable_filter_at_{one.extents}(" in header.read_text()
    timed = rows(run.run_folder, "SELECT DISTINCT symbol FROM measurements WHERE purpose='size play-off'")
    assert {symbol for (symbol,) in timed} >= {run.best.published.symbol, *(one.symbol for one in own)}


def test_a_run_tells_what_is_used_at_each_size(run: TuneResult) -> None:
    told = json.loads(json.dumps(run.to_dict()))["tuned"][0]["size_schedules"]
    assert [one["extents"] for one in told] == ["192x96x3", "384x192x3"]
    assert [one["sample"] for one in told] == [one.sample for one in run.best.size_schedules]
    (header,) = read_recorded_run(run.run_folder).headers.values()
    assert header.size_schedules == run.best.size_schedules
