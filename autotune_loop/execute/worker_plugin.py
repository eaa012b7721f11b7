"""What ties a Dask worker to its member."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from distributed import Worker, WorkerPlugin

from autotune_loop.farm.quiet_dask import forget_keys

if TYPE_CHECKING:
    from autotune_loop.execute.worker import FarmMember

PLUGIN_NAME = "sdk-member"
_LOOK_ROUND_S = 2.0


async def told(tell: Callable[[str], dict[str, Any]], worker_name: str, worker: Worker) -> dict[str, Any]:
    """What a member tells of one of its workers, as Dask asks for it."""
    return tell(worker_name)


class MemberPlugin(WorkerPlugin):  # type: ignore[misc] # Dask has no type information
    """Gives the tasks of a Dask worker the member that the worker belongs to.

    Args:
        keeps_house: this one of the member's ends what nobody needs any more.
    """

    name = PLUGIN_NAME

    def __init__(self, member: FarmMember, *, keeps_house: bool = False) -> None:
        self.member = member
        self._keeps_house = keeps_house
        self._house_keeping: asyncio.Task[None] | None = None

    def setup(self, worker: Worker) -> None:
        """Called by Dask, on the worker's loop, when the worker starts."""
        if self._keeps_house:
            self._house_keeping = asyncio.ensure_future(self._keep_house(worker))

    def teardown(self, worker: Worker) -> None:
        """Called by Dask when the worker ends."""
        if self._house_keeping is not None:
            self._house_keeping.cancel()

    async def _keep_house(self, worker: Worker) -> None:
        missed: set[str] = set()
        while True:
            await asyncio.sleep(_LOOK_ROUND_S)
            forget_keys()
            # A scheduler that is away shows elsewhere; until it is back, nothing is ended.
            with contextlib.suppress(OSError, TimeoutError, ValueError):
                if guests := self.member.guests:
                    live = set(await asyncio.wait_for(worker.scheduler.sdk_live_runs(), _LOOK_ROUND_S))
                    # Missed twice: a user whose connection is being made again is forgotten for a moment.
                    for run_id in missed - live:
                        await asyncio.to_thread(self.member.end_run, run_id)
                    missed = set(guests) - live
            await asyncio.to_thread(self.member.close_idle)


def member_of(worker: Worker) -> FarmMember:
    """The member that a Dask worker belongs to."""
    plugin = worker.plugins[PLUGIN_NAME]
    assert isinstance(plugin, MemberPlugin)
    return plugin.member
