"""A scheduler with a farm's real certificates, in this process."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from halide_autotune.autotune_loop.farm.address import FarmAddress
from halide_autotune.autotune_loop.farm.quiet_dask import PortlessWorker
from halide_autotune.autotune_loop.farm.scheduler import VERSIONS_KEY, FarmScheduler
from halide_autotune.autotune_loop.farm.versions import FarmVersions

VERSIONS = FarmVersions("1.0 (code ab)", "21.0.0", "2026.8.0", "3.11", {"adams2019": "a" * 64})
_LIMIT_S = 240.0


def farm_scheduler(folder: Path, told: list[str]) -> FarmScheduler:
    """A scheduler with the certificate of a folder, whatever that is; to be entered.

    Args:
        told: takes the lines of its log.
    """
    return FarmScheduler(
        versions=VERSIONS,
        tell=told.append,
        protocol="tls://",
        host="127.0.0.1",
        port=0,
        dashboard=False,
        security=FarmAddress("tls://127.0.0.1:1", folder).security(),
    )


@contextlib.asynccontextmanager
async def farm_worker(
    address: str, folder: Path, only: bytes | None = None, name: str = "build:lab1"
) -> AsyncIterator[PortlessWorker]:
    """A Dask worker that says that it is of the scheduler's versions.

    Args:
        only: the one certificate (DER) that may connect to it.
    """
    worker = PortlessWorker(
        address,
        name=name,
        host="127.0.0.1",
        dashboard=False,
        memory_limit=0,
        security=FarmAddress(address, folder).security(only),
    )
    worker.startup_information[VERSIONS_KEY] = lambda _: dataclasses.asdict(VERSIONS)
    try:
        await asyncio.wait_for(worker, _LIMIT_S)
        yield worker
    finally:
        await worker.close(executor_wait=False)


async def until(condition: Callable[[], object]) -> None:
    """Wait for it on the loop."""

    async def look() -> None:
        while not condition():
            await asyncio.sleep(0.02)

    await asyncio.wait_for(look(), _LIMIT_S)
