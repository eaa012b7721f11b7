"""A farm's scheduler takes workers of its own versions and nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest
from dask import config as dask_config
from distributed.core import rpc

from halide_autotune.autotune_loop.farm.device import ANNOUNCEMENT, Announcement
from halide_autotune.autotune_loop.farm.quiet_dask import QUIET_CONFIG, PortlessWorker
from halide_autotune.autotune_loop.farm.scheduler import VERSIONS_KEY, FarmScheduler
from halide_autotune.autotune_loop.farm.state import FarmState
from halide_autotune.autotune_loop.farm.versions import FarmVersions
from tests.farm_certificates import until

MINE = FarmVersions("1.0 (code ab)", "21.0.0", "2026.8.0", "3.11", {"adams2019": "a" * 64})


def _scheduler(told: list[str]) -> FarmScheduler:
    return FarmScheduler(versions=MINE, tell=told.append, protocol="tcp://", host="127.0.0.1", port=0, dashboard=False)


def _worker(scheduler: FarmScheduler, name: str, part: str = "build:", **options: Any) -> PortlessWorker:
    """One of the Dask workers of the worker `name`."""
    worker = PortlessWorker(scheduler.address, name=part + name, dashboard=False, memory_limit=0, **options)
    worker.startup_information[VERSIONS_KEY] = lambda _: dataclasses.asdict(MINE)
    worker.startup_information[ANNOUNCEMENT] = lambda _: msgspec.to_builtins(Announcement(name, name, 1, None))
    return worker


async def _state(scheduler: FarmScheduler) -> FarmState:
    asked = rpc(scheduler.address)
    told: bytes = await asked.sdk_state()
    await asked.close_rpc()
    return msgspec.msgpack.decode(told, type=FarmState)


async def _silent(data: object = None) -> None:
    await asyncio.sleep(3600)


def _play(play: Any, folder: Path) -> None:
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with dask_config.set({**QUIET_CONFIG, "temporary-directory": str(folder)}):
        asyncio.run(play())


def test_who_does_not_say_or_says_something_else_is_not_registered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    told: list[str] = []
    its = dataclasses.replace(MINE, halide="20.0.0")

    async def try_all() -> None:
        async with _scheduler(told) as scheduler:
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
                    assert answer == {"not_yet": "The farm already has build slots of lab1, from another process."}
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


def test_who_cannot_be_connected_to_does_not_join(tmp_path: Path) -> None:
    told: list[str] = []

    async def play() -> None:
        async with _scheduler(told) as scheduler:
            # It says that it is somewhere else, as behind a router that translates addresses.
            with pytest.raises((ValueError, RuntimeError)):
                await _worker(scheduler, "lab1", contact_address="tcp://127.0.0.1:1")
            assert not scheduler.workers
            state = await _state(scheduler)
            assert [(out.name, out.address) for out in state.put_out] == [("lab1", "tcp://127.0.0.1:1")]
            asked = rpc(scheduler.address)
            why = await asked.farm_why_out(name="lab1")
            assert why.startswith("the scheduler cannot connect to it at tcp://127.0.0.1:1 (")
            assert await asked.farm_why_out(name="lab2") == ""
            # It has lost no work, so it may try again at once.
            versions = dataclasses.asdict(MINE)
            assert await asked.farm_admission(name="lab1", workers=["build:lab1"], versions=versions) == {}
            await asked.close_rpc()
            async with _worker(scheduler, "lab1"):
                assert (await _state(scheduler)).put_out == ()

    _play(play, tmp_path)
    assert told[0].startswith("Put out: lab1, because the scheduler cannot connect to it at tcp://127.0.0.1:1 (")


def test_who_does_not_answer_is_put_out_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("halide_autotune.autotune_loop.farm.scheduler._ASK_S", 0.05)
    monkeypatch.setattr("halide_autotune.autotune_loop.farm.scheduler._ANSWER_LIMIT_S", 10.0)
    told: list[str] = []

    async def play() -> None:
        async with _scheduler(told) as scheduler:
            worker = _worker(scheduler, "lab1")
            async with worker, _worker(scheduler, "lab1", part="device:"), _worker(scheduler, "lab2"):
                worker.handlers["echo"] = _silent
                await until(lambda: len(scheduler.workers) == 1)
                assert list(scheduler.aliases) == ["build:lab2"], "all of the process are out, and nobody else"
                state = await _state(scheduler)
                assert [(out.name, out.reason) for out in state.put_out] == [
                    ("lab1", f"it does not answer at {worker.address}")
                ]
            asked = rpc(scheduler.address)
            versions = dataclasses.asdict(MINE)
            answer = await asked.farm_admission(name="lab1", workers=["build:lab1"], versions=versions)
            assert answer["not_yet"].startswith("lab1 was put out of the farm: it does not answer at tcp://")
            scheduler._back_s["lab1"] = 0.0
            assert await asked.farm_admission(name="lab1", workers=["build:lab1"], versions=versions) == {}
            await asked.close_rpc()

    _play(play, tmp_path)
    assert any(line.startswith("Put out: lab1, because it does not answer") for line in told)


def test_where_most_do_not_answer_nobody_is_put_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("halide_autotune.autotune_loop.farm.scheduler._ASK_S", 3600.0)
    monkeypatch.setattr("halide_autotune.autotune_loop.farm.scheduler._ANSWER_LIMIT_S", 10.0)
    told: list[str] = []

    async def play() -> None:
        async with _scheduler(told) as scheduler, contextlib.AsyncExitStack() as exits:
            workers = [await exits.enter_async_context(_worker(scheduler, f"lab{number}")) for number in range(3)]
            for worker in workers:
                worker.handlers["echo"] = _silent
            await scheduler._look_at_workers()
            assert len(scheduler.workers) == 3

    _play(play, tmp_path)
    assert "3 of 3 workers do not answer, so it is not they: nobody is put out." in told
