"""A Dask scheduler that takes only workers of its own versions."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from distributed.comm import Comm

from autotune_loop.farm.ledger import FarmLedger
from autotune_loop.farm.quiet_dask import PortlessScheduler
from autotune_loop.farm.versions import FarmVersions, check_versions
from targets.errors import FarmError

# What a worker says of itself when it registers has its versions under this name.
VERSIONS_KEY = "sdk_versions"
# What workers tell of themselves costs the scheduler as much as their measurements do, so it is shared out.
_HEARTBEATS_PER_S = 20
_LONGEST_HEARTBEAT_S = 10.0


class FarmScheduler(PortlessScheduler):
    """Opens one port, for the farm alone, and keeps the ledger of runs.

    Args:
        versions: its own; a worker with others is refused.
        tell: a line for the log.
        options: as `distributed.Scheduler` takes them.
    """

    def __init__(self, *, versions: FarmVersions, tell: Callable[[str], None], **options: Any) -> None:
        super().__init__(plugins=[FarmLedger()], **options)
        self._farm_versions = versions
        self._tell = tell
        self.handlers["farm_admission"] = self.farm_admission
        self.handlers["farm_versions"] = self.farm_versions

    async def farm_versions(self) -> dict[str, object]:
        """For a client, which compares them with its own."""
        return self._farm_versions.to_fields()

    async def farm_admission(self, name: str, workers: list[str], versions: object) -> dict[str, str]:
        """Before a worker's Dask workers register: a message on why they may not, or may not yet.

        Returns:
            'refused' or 'taken' with a message; empty where they are welcome.
        """
        if message := self._refusal(name, versions):
            self._tell(f"Refused: {message}")
            return {"refused": message}
        taken = [worker for worker in workers if worker in self.aliases]
        if taken:
            return {"taken": f"The farm has {', '.join(map(_shown, taken))} already, from another process."}
        return {}

    def _refusal(self, name: str, versions: object) -> str:
        try:
            its = FarmVersions.from_fields(versions)
            check_versions(self._farm_versions, its, "the scheduler", f"worker {_shown(name)}")
        except FarmError as error:
            return str(error)
        return ""

    def heartbeat_worker(self, **fields: Any) -> dict[str, Any]:
        """Take a worker's word that it is there; says when the next one is due."""
        answer: dict[str, Any] = super().heartbeat_worker(**fields)
        due_s = min(len(self.workers) / _HEARTBEATS_PER_S, _LONGEST_HEARTBEAT_S)
        answer["heartbeat-interval"] = max(answer.get("heartbeat-interval", 0.0), due_s)
        return answer

    async def add_worker(self, comm: Comm, *, name: str, extra: dict[str, Any], **fields: Any) -> None:
        """Register a worker; returns when it has left."""
        if message := self._refusal(str(name), extra.get(VERSIONS_KEY)):
            self._tell(f"Refused: {message}")
            await comm.write({"status": "error", "message": message, "time": time.time()})
            return
        self._tell(f"Joined: {_shown(str(name))}, from {comm.peer_address}.")
        try:
            await super().add_worker(comm, name=name, extra=extra, **fields)
        finally:
            self._tell(f"Left: {_shown(str(name))}.")


def _shown(worker_name: str) -> str:
    """A worker's name for people: 'device pi5', 'build slots of lab1'."""
    kind, _, name = worker_name.partition(":")
    text = {"device": f"device {name}", "build": f"build slots of {name}"}.get(kind, worker_name)
    return "".join(letter for letter in text[:120] if letter.isprintable())
