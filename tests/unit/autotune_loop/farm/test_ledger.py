"""What the scheduler's ledger answers, and what it does not keep."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from dask import config as dask_config
from dask.utils import key_split
from distributed.core import rpc

from halide_autotune.autotune_loop.farm.ledger import FarmLedger, run_of, task_key
from halide_autotune.autotune_loop.farm.quiet_dask import QUIET_CONFIG, PortlessScheduler

RUN: dict[str, Any] = {
    "run_id": "a1b2c3",
    "client": "client-1",
    "user": "ana@laptop",
    "title": "blur.py",
    "priority": "normal",
    "virtual_s": 3.0,
    "estimate_s": 0.5,
    "under_way": 0,
}


def test_a_beat_names_the_run_and_lets_go_of_what_is_over(tmp_path: Path) -> None:
    async def beat() -> tuple[dict[str, Any], list[str]]:
        async with PortlessScheduler(protocol="tcp://", host="127.0.0.1", port=0, dashboard=False) as scheduler:
            ledger = FarmLedger()
            await ledger.start(scheduler)
            asked = rpc(scheduler.address)
            for _ in range(1000):
                key_split(task_key(RUN["run_id"], "device:pi5"))  # as Dask does for each task
            answer = await asked.sdk_beat(run=RUN, known=-1)
            live = await asked.sdk_live_runs()
            await asked.close_rpc()
            return answer, live

    with dask_config.set({**QUIET_CONFIG, "temporary-directory": str(tmp_path)}):
        answer, live = asyncio.run(beat())
    assert key_split.cache_info().currsize < 10
    assert list(live) == ["a1b2c3"]
    assert answer.pop("version") >= 0
    assert answer == {"floor_s": 3.0, "is_known": False, "workers": {}}


def test_a_key_names_its_run() -> None:
    assert run_of(task_key("a1b2c3", "device:pi5")) == "a1b2c3"
    assert key_split(task_key("a1b2c3", "device:pi5")) == "measure"
