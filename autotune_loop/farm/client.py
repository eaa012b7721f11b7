"""A user's connection to a farm."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from dask import config as dask_config
from distributed import Client

from halide_autotune.autotune_loop.farm.address import FarmAddress
from halide_autotune.autotune_loop.farm.probe_scheduler import probe_scheduler
from halide_autotune.autotune_loop.farm.quiet_dask import QUIET_CONFIG, quiet_logs
from halide_autotune.autotune_loop.farm.versions import FarmVersions, check_versions, own_versions
from halide_autotune.targets.errors import FarmError

_CLOSING_S = 5.0
_JOINING_S = 15.0
# So long one attempt to find the scheduler again takes at most; and the pause before the next.
_ATTEMPT_S = 10.0
_PAUSE_S = 0.5
# Longer than any run waits. Dask reads the wall clock, which goes on while a laptop sleeps.
_AWAY_S = 30 * 86400.0


class _SteadyClient(Client):  # type: ignore[misc] # Dask has no type information
    """Tries every few seconds to find a scheduler that was away, where Dask's own pauses grow to minutes."""

    _attempt_s = _JOINING_S

    async def _ensure_connected(self, timeout: float | None = None) -> None:
        """Called by Dask at the start, and again and again once the connection is lost."""
        try:
            await super()._ensure_connected(min(timeout or self._attempt_s, self._attempt_s))
        except OSError:
            await asyncio.sleep(_PAUSE_S)
            raise
        self._attempt_s = _ATTEMPT_S


@contextlib.contextmanager
def farm_client(address: FarmAddress) -> Iterator[Client]:
    """A Dask client of a farm's scheduler.

    Raises:
        FarmError: nobody listens there, it is no scheduler, a certificate is refused, by either side, or the versions
            differ.
    """
    quiet_logs()
    security = address.security()
    probe_scheduler(address)
    with dask_config.set(QUIET_CONFIG):
        try:
            client = _SteadyClient(address.address, security=security, timeout=_JOINING_S, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise FarmError(
                f"{address.address} does not answer like a farm's scheduler: {error}.",
                next_step="Check that it runs `sdk farm scheduler` of this SDK's version.",
            ) from error
        # How long it is looked for once it was there; the first time it must be there at once.
        client._timeout = _AWAY_S
        try:
            # Workers of other versions are the scheduler's to refuse.
            versions = FarmVersions.from_fields(client.sync(client.scheduler.farm_versions))
            check_versions(versions, own_versions(builds=True), "the scheduler", "this machine")
            yield client
        finally:
            with contextlib.suppress(OSError, TimeoutError):  # the scheduler may be gone
                client.close(timeout=_CLOSING_S)
