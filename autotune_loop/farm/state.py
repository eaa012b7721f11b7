"""What goes on in a farm: workers, devices, runs and their queue. A snapshot, for people and for choosing devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
        FarmError: it does not answer, or not as a farm's scheduler does.
    """
    try:
        told = client.sync(client.scheduler.sdk_state, callback_timeout=_ANSWER_S)
        return _state(told)
    except (OSError, TimeoutError, AttributeError, KeyError, ValueError, TypeError) as error:
        raise FarmError(
            f"Cannot read the farm's state from {client.scheduler.address}: {str(error).rstrip('.') or 'no answer'}.",
            next_step="Check that it still runs, with this SDK's version.",
        ) from error


def _state(told: Mapping[str, Any]) -> FarmState:
    workers: dict[str, dict[str, Any]] = {}
    devices = []
    for address, dask_worker in told["workers"].items():
        announced = dask_worker["announced"]
        row = workers.setdefault(
            announced["worker_id"],
            {"name": announced["worker"], "address": address, "build_slots": 0, "building": 0},
        )
        if announced["device"]:
            devices.append(_device(announced, dask_worker))
        else:
            row["build_slots"] = announced["build_slots"]
            row["building"] = len(dask_worker["processing"])
    builds = [run for row in told["workers"].values() if not row["announced"]["device"] for run in row["processing"]]
    runs = [_run(row, builds.count(row["run_id"])) for row in told["runs"]]
    return FarmState(
        workers=tuple(
            sorted((FarmWorkerState(worker_id=key, **row) for key, row in workers.items()), key=lambda row: row.name)
        ),
        devices=tuple(sorted(devices, key=lambda row: row.device.name)),
        runs=tuple(sorted(runs, key=lambda row: row.since_unix_s)),
    )


def _device(announced: Mapping[str, Any], dask_worker: Mapping[str, Any]) -> FarmDeviceState:
    report = dask_worker["report"]
    waiting = list(dask_worker["processing"])
    if report.get("run_id") in waiting:
        waiting.remove(report["run_id"])
    return FarmDeviceState(
        device=FarmDevice.from_fields(announced["device"]),
        worker=announced["worker"],
        run_id=report.get("run_id", ""),
        task=report.get("task", ""),
        busy_s=report.get("busy_s", 0.0),
        is_held=report.get("held", False),
        users=tuple(report.get("users", ())),
        waiting=tuple(waiting),
        failures=tuple(DeviceFailure(*failure) for failure in report.get("failures", ())),
    )


def _run(row: Mapping[str, Any], building: int) -> FarmRunState:
    names = ("run_id", "user", "title", "priority", "virtual_s", "under_way", "position", "start_s")
    fields = {name: row[name] for name in names}
    return FarmRunState(**fields, building=building, since_unix_s=row["since_unix_s"], silent_s=row["silent_s"])
