"""What goes on in a farm: workers, devices, runs and their queue. A snapshot, for people and for choosing devices."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from distributed import Client

from autotune_loop.farm.device import FarmDevice
from targets.errors import FarmError

_ANSWER_S = 10.0


@dataclass(frozen=True)
class DeviceFailure:
    """A failure of a device, one of its last few.

    Attributes:
        unix_s: when.
        run_id: of the run that met it.
    """

    unix_s: float
    run_id: str
    message: str


@dataclass(frozen=True)
class FarmDeviceState:
    """A device of the farm just now.

    Attributes:
        worker: the name of the worker that has it.
        run_id, task, busy_s: what it does, and for how long; empty and 0 when it does nothing.
        is_held: its lease is the farm's just now.
        users: the runs that have it open.
        waiting: runs whose tasks wait for it, the next one first; a run appears once for each task.
        failures: the oldest first.
    """

    device: FarmDevice
    worker: str
    run_id: str
    task: str
    busy_s: float
    is_held: bool
    users: tuple[str, ...]
    waiting: tuple[str, ...]
    failures: tuple[DeviceFailure, ...]

    @property
    def state(self) -> str:
        """'busy', 'held' (open for a run, or given back soon) or 'free'."""
        return "busy" if self.run_id else "held" if self.is_held else "free"


@dataclass(frozen=True)
class FarmWorkerState:
    """A worker of the farm.

    Attributes:
        address: where its scheduler reaches it.
        building: builds that it has been given.
    """

    name: str
    worker_id: str
    address: str
    build_slots: int
    building: int


@dataclass(frozen=True)
class FarmRunState:
    """A run that uses the farm.

    Attributes:
        user, title: who, and what is tuned.
        virtual_s: device seconds that it has had, over its priority's weight.
        under_way: measurements that it has asked for and that are not done.
        position: tasks of others that come before its next one; 0 when one is served.
        start_s: seconds until its next one begins, as far as is known.
        building: builds that are waiting or under way.
        since_unix_s: when it joined.
        silent_s: how long it has not been heard of.
    """

    run_id: str
    user: str
    title: str
    priority: str
    virtual_s: float
    under_way: int
    position: int
    start_s: float
    building: int
    since_unix_s: float
    silent_s: float


@dataclass(frozen=True)
class FarmState:
    """Workers, devices and runs, each in the order of their names or of their joining."""

    workers: tuple[FarmWorkerState, ...]
    devices: tuple[FarmDeviceState, ...]
    runs: tuple[FarmRunState, ...]


def farm_state(client: Client) -> FarmState:
    """Ask a farm's scheduler.

    Raises:
        FarmError: it does not answer, or not like a farm's scheduler.
    """
    try:
        told = client.sync(client.scheduler.sdk_state, callback_timeout=_ANSWER_S)
        return msgspec.msgpack.decode(told, type=FarmState)
    except (OSError, TimeoutError, AttributeError, ValueError, TypeError) as error:
        raise FarmError(
            f"Cannot read the farm's state from {client.scheduler.address}: {str(error).rstrip('.') or 'no answer'}.",
            next_step="Check that it still runs, with this SDK's version.",
        ) from error
