"""A user's connection to a farm."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from dask import config as dask_config
from distributed import Client

from autotune_loop.farm.address import FarmAddress
from autotune_loop.farm.probe_scheduler import probe_scheduler
from autotune_loop.farm.quiet_dask import QUIET_CONFIG, quiet_logs
from autotune_loop.farm.versions import FarmVersions, check_versions, own_versions
from targets.errors import FarmError

_CLOSING_S = 5.0
_JOINING_S = 15.0
_AWAY_S = 600.0


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
            client = Client(address.address, security=security, timeout=_JOINING_S, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise FarmError(
                f"{address.address} does not answer like a farm's scheduler: {error}.",
                next_step="Check that it runs `sdk farm scheduler` of this SDK's version.",
            ) from error
        # How long Dask tries to find a scheduler again that was there; the first time it must be there at once.
        client._timeout = _AWAY_S
        try:
            # Workers of other versions are the scheduler's to refuse.
            versions = FarmVersions.from_fields(client.sync(client.scheduler.farm_versions))
            check_versions(versions, own_versions(builds=True), "the scheduler", "this machine")
            yield client
        finally:
            with contextlib.suppress(OSError, TimeoutError):
                client.close(timeout=_CLOSING_S)
