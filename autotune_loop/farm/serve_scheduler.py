"""Running a farm's scheduler until it is told to stop."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from urllib.parse import urlsplit

from autotune_loop.farm.address import FarmAddress
from autotune_loop.farm.versions import own_versions
from targets.errors import FarmError
from targets.process.stop_signal import StopSignal

# A worker that is not heard of for so long is given up; one whose process died is noticed at once.
_SILENCE_LIMIT = "60s"


def serve_scheduler(address: FarmAddress, tell: Callable[[str], None], stop: StopSignal) -> None:
    """Listen at the address; returns when `stop` is set.

    Args:
        tell: a line for the log.

    Raises:
        FarmError: the address cannot be listened at, or a certificate is missing or wrong.
        ToolchainError: Halide is not installed, so that its version cannot be compared.
    """
    asyncio.run(_serve(address, tell, stop))


async def _serve(address: FarmAddress, tell: Callable[[str], None], stop: StopSignal) -> None:
    from dask import config as dask_config

    from autotune_loop.farm.quiet_dask import QUIET_CONFIG
    from autotune_loop.farm.scheduler import FarmScheduler

    parts = urlsplit(address.address)
    with (
        tempfile.TemporaryDirectory(prefix="sdk-farm-") as folder,
        dask_config.set(
            {**QUIET_CONFIG, "temporary-directory": folder, "distributed.scheduler.worker-ttl": _SILENCE_LIMIT}
        ),
    ):
        scheduler = FarmScheduler(
            versions=own_versions(builds=True),
            tell=tell,
            protocol=f"{parts.scheme}://",
            host=parts.hostname or None,
            port=parts.port or 0,
            dashboard=False,
            security=address.security(),
        )
        try:
            await scheduler
        except (OSError, RuntimeError) as error:
            # Dask wraps it.
            cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
            reason = getattr(cause, "strerror", None) or str(cause)
            raise FarmError(
                f"The scheduler cannot listen at {address.address}: {reason.lower()}.",
                next_step="End what uses the port, or give another: --listen tls://:8787.",
            ) from error
        tell(f"The scheduler is ready at {scheduler.address}.")
        await stopped(stop)
        await scheduler.close(reason="stopped")


async def stopped(stop: StopSignal) -> None:
    """Wait for a stop signal without a thread."""
    loop = asyncio.get_running_loop()
    event = asyncio.Event()
    loop.add_reader(stop.fileno(), event.set)
    try:
        await event.wait()
    finally:
        loop.remove_reader(stop.fileno())
