"""A farm's scheduler takes workers of its own versions and nobody else."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from pathlib import Path

import pytest
from dask import config as dask_config
from distributed.core import rpc

from autotune_loop.farm.quiet_dask import QUIET_CONFIG, PortlessWorker
from autotune_loop.farm.scheduler import VERSIONS_KEY, FarmScheduler
from autotune_loop.farm.versions import FarmVersions

MINE = FarmVersions("1.0 (code ab)", "21.0.0", "2026.8.0", "3.11", {"adams2019": "a" * 64})


def test_who_does_not_say_or_says_something_else_is_not_registered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    told: list[str] = []
    its = dataclasses.replace(MINE, halide="20.0.0")

    async def try_all() -> None:
        async with FarmScheduler(
            versions=MINE, tell=told.append, protocol="tcp://", host="127.0.0.1", port=0, dashboard=False
        ) as scheduler:
            for told_versions, name in ((None, "plain"), (its, "device:pi5"), (MINE, "build:lab1")):
                versions = None if told_versions is None else dataclasses.asdict(told_versions)
                worker = PortlessWorker(scheduler.address, name=name, dashboard=False, memory_limit=0)
                if versions is not None:
                    worker.startup_information[VERSIONS_KEY] = lambda _, versions=versions: versions
                if told_versions is MINE:
                    await worker
                    assert list(scheduler.aliases) == ["build:lab1"]
                    asked = rpc(scheduler.address)
                    answer = await asked.farm_admission(name="lab9", workers=["build:lab1"], versions=versions)
                    assert answer == {"taken": "The farm already has build slots of lab1, from another process."}
                    await asked.close_rpc()
                    await worker.close()
                else:
                    with pytest.raises((ValueError, RuntimeError)):
                        await worker
                    assert not scheduler.workers

    with dask_config.set({**QUIET_CONFIG, "temporary-directory": str(tmp_path)}):
        asyncio.run(try_all())
    assert "does not say which versions it has" in told[0] and told[0].startswith("Refused: ")
    assert "Worker device pi5 differs from the scheduler. Halide: 21.0.0 on the scheduler, 20.0.0 on" in told[1]
    assert told[2].startswith("Joined: build slots of lab1, from tcp://") and told[3] == "Left: build slots of lab1."
