"""What a run knows of its farm, with a real scheduler in this process."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from dask import config as dask_config
from distributed import Client
from distributed.core import rpc

from halide_autotune.autotune_loop.events import Event, Notice
from halide_autotune.autotune_loop.farm.address import FarmAddress
from halide_autotune.autotune_loop.farm.fair_share import FairShare
from halide_autotune.autotune_loop.farm.ledger import FarmLedger
from halide_autotune.autotune_loop.farm.quiet_dask import QUIET_CONFIG, PortlessScheduler
from halide_autotune.autotune_loop.farm.use import DeviceWish, FarmUse
from halide_autotune.autotune_loop.farm.worker_registry import WorkerRegistry
from tests.farm_certificates import until
from tests.kept_port import KeptPort


def _scheduler(port: int = 0) -> PortlessScheduler:
    return PortlessScheduler(plugins=[FarmLedger()], protocol="tcp://", host="127.0.0.1", port=port, dashboard=False)


def _registry(client: Client, events: list[Event]) -> WorkerRegistry:
    async def left(names: set[str | None]) -> None:
        raise AssertionError(f"there was nothing to leave: {names}")

    use = FarmUse(FarmAddress(client.scheduler.address), DeviceWish("x86-64", ()))
    return WorkerRegistry(client, "a1b2c3", use, FairShare(2.0), left, events.append)


def test_a_scheduler_that_knows_its_client_no_more_is_connected_to_anew(tmp_path: Path) -> None:
    """As when a laptop slept: the other side has given the connection up."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    events: list[Event] = []

    async def play() -> None:
        async with (
            _scheduler() as scheduler,
            Client(scheduler.address, asynchronous=True, set_as_default=False) as client,
        ):
            registry = _registry(client, events)
            await asyncio.to_thread(registry.start)
            before = client.scheduler_comm
            scheduler.remove_client(client.id)
            await until(lambda: client.id in scheduler.clients and client.status == "running")
            assert client.scheduler_comm is not before
            asked = rpc(scheduler.address)
            assert list(await asked.sdk_live_runs()) == ["a1b2c3"]
            await asked.close_rpc()
            registry.stop()

    with dask_config.set({**QUIET_CONFIG, "temporary-directory": str(tmp_path)}):
        asyncio.run(play())
    assert events == [], "nobody need know"


def test_a_scheduler_that_does_not_answer_is_told_once_and_that_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    monkeypatch.setattr("halide_autotune.autotune_loop.farm.worker_registry._BEAT_S", 0.05)
    monkeypatch.setattr("halide_autotune.autotune_loop.farm.worker_registry._ANSWER_S", 10.0)
    events: list[Event] = []
    port = KeptPort()

    def texts() -> list[str]:
        return [event.text for event in events if isinstance(event, Notice)]

    async def play() -> None:
        scheduler = await _scheduler(port.number)
        async with Client(scheduler.address, asynchronous=True, set_as_default=False) as client:
            registry = _registry(client, events)
            await asyncio.to_thread(registry.start)
            await scheduler.close()
            await until(texts)
            assert not registry.is_heard
            async with _scheduler(port.number) as again:
                await until(lambda: len(texts()) == 2 and client.id in again.clients)
                registry.stop()

    with dask_config.set({**QUIET_CONFIG, "temporary-directory": str(tmp_path)}):
        asyncio.run(play())
    assert "does not answer. It is looked for" in texts()[0]
    assert texts()[1].endswith("answers again.")


def test_a_run_whose_client_has_gone_is_forgotten(tmp_path: Path) -> None:
    async def play() -> list[list[str]]:
        async with _scheduler() as scheduler:
            asked, seen = rpc(scheduler.address), []
            run = {"run_id": "a1b2c3", "client": "gone", "user": "", "title": "", "priority": "normal"}
            answer = await asked.sdk_beat(run={**run, "virtual_s": 0.0, "estimate_s": 0.0, "under_way": 0}, known=-1)
            assert not answer["is_known"]
            seen.append(list(await asked.sdk_live_runs()))
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("halide_autotune.autotune_loop.farm.ledger._SILENT_S", 0.0)
                seen.append(list(await asked.sdk_live_runs()))
            await asked.close_rpc()
            return seen

    with dask_config.set({**QUIET_CONFIG, "temporary-directory": str(tmp_path)}):
        # Its client may be about to connect again, so it is kept for a while.
        assert asyncio.run(play()) == [["a1b2c3"], []]
