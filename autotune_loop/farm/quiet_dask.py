"""Dask without what would disturb a measurement, and without what it keeps of tasks that are over."""

from __future__ import annotations

import logging
from typing import Any

from dask.utils import key_split
from distributed import Scheduler, Worker

QUIET_CONFIG = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.system-monitor.log-length": 1,
    # Its logs of events and transitions would grow with every task of a long run.
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.log-length": 100,
    # Of each connection the last messages, with the tasks in them.
    "distributed.admin.low-level-log-length": 0,
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.active-memory-manager.start": False,
    # A task whose worker dies comes back to the run that asked for it, which knows what to do.
    "distributed.scheduler.allowed-failures": 0,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.daemon": True,
}


def quiet_logs() -> None:
    """Leave Dask's own log to those who serve a farm: what a run must know of comes to it otherwise."""
    for name in ("distributed", "distributed.client", "distributed.core", "distributed.comm", "distributed.batched"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # It calls critical that a client has gone before it heard the last news, as at the end of any run.
    logging.getLogger("distributed.scheduler").setLevel(logging.CRITICAL + 1)
    logging.getLogger("asyncio").addFilter(_is_no_late_timeout)


def _is_no_late_timeout(record: logging.LogRecord) -> bool:
    """False for the timer of a Dask connection that ran out while the connection was closed: nobody waits for it."""
    error = record.exc_info[1] if record.exc_info else None
    late = isinstance(error, TimeoutError) and record.getMessage().startswith("Future exception was never retrieved")
    return not late


def forget_keys() -> None:
    """Let go of the names of tasks that are over, of which Dask keeps the last 100,000 in each process."""
    key_split.cache_clear()


class PortlessScheduler(Scheduler):  # type: ignore[misc] # Dask has no type information
    """Without the HTTP server that Dask opens on a port even where there is no dashboard, and without its extensions:
    locks, queues and others that nothing here uses, and spans, which keep something of every task."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, extensions={}, **kwargs)

    def start_http_server(self, *args: Any, **kwargs: Any) -> None:
        """Open nothing."""


class PortlessWorker(Worker):  # type: ignore[misc] # Dask has no type information
    """The same for a worker."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, extensions={}, **kwargs)

    def start_http_server(self, *args: Any, **kwargs: Any) -> None:
        """Open nothing."""
