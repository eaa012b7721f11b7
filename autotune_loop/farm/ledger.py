"""What a farm's scheduler knows of runs beside their tasks: who they are, and how much they have had."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from distributed import Scheduler, SchedulerPlugin

from autotune_loop.farm.device import ANNOUNCEMENT, BUILD_RESOURCE, FarmDevice
from autotune_loop.farm.quiet_dask import forget_keys
from autotune_loop.farm.state import DeviceFailure, FarmDeviceState, FarmRunState, FarmState, FarmWorkerState

PLUGIN_NAME = "sdk-ledger"
# A run that is not heard of for so long takes no part in the queue; its client says when it ends.
_SILENT_S = 30.0
_LONGEST_TEXT = 200


@dataclass
class RunRow:
    """A run, as its client tells.

    Attributes:
        client: Dask's name of it.
        user, title: for people.
        weight: of its priority.
        virtual_s: device seconds over weight.
        estimate_s: what one of its measurements takes.
        under_way: measurements that it has submitted and that are not done.
        since_unix_s: when it joined.
        heard_s: monotonic time at which it was last heard of.
    """

    run_id: str
    client: str
    user: str
    title: str
    priority: str
    weight: float
    virtual_s: float = 0.0
    estimate_s: float = 1.0
    under_way: int = 0
    since_unix_s: float = 0.0
    heard_s: float = 0.0


class FarmLedger(SchedulerPlugin):  # type: ignore[misc] # Dask has no type information
    """Answers runs and workers; forgets a run with its client. Lives on the scheduler's loop."""

    name = PLUGIN_NAME

    def __init__(self) -> None:
        self.runs: dict[str, RunRow] = {}
        self._version = 0

    async def start(self, scheduler: Scheduler) -> None:
        """Called by Dask when the scheduler starts."""
        self._scheduler = scheduler
        scheduler.handlers["sdk_beat"] = self.beat
        scheduler.handlers["sdk_live_runs"] = self.live_runs
        scheduler.handlers["sdk_state"] = self.state

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        """Called by Dask when a worker joins."""
        self._version += 1

    def remove_worker(self, scheduler: Scheduler, worker: str, **others: Any) -> None:
        """Called by Dask when a worker leaves."""
        self._version += 1

    def remove_client(self, scheduler: Scheduler, client: str) -> None:
        """Called by Dask when a client has ended, or its connection has."""
        self.runs = {run_id: row for run_id, row in self.runs.items() if row.client != client}

    async def live_runs(self) -> list[str]:
        """For workers: the runs whose clients are there."""
        return list(self.runs)

    async def beat(self, run: dict[str, Any], known: int) -> dict[str, Any]:
        """For runs: what others have had, where this one stands in the queue, and the workers when they changed.

        Args:
            run: the fields of its RunRow.
            known: the version of the list of workers that it has.
        """
        forget_keys()
        row = self._written_down(run)
        answer: dict[str, Any] = {"floor_s": self._floor_s(row), "version": self._version}
        if row.under_way:
            answer["position"], answer["start_s"] = self._place_in_queue(row)
        if known != self._version:
            answer["workers"] = {
                address: worker.extra[ANNOUNCEMENT]
                for address, worker in self._scheduler.workers.items()
                if ANNOUNCEMENT in worker.extra
            }
        return answer

    def _written_down(self, run: Mapping[str, Any]) -> RunRow:
        fields: dict[str, Any] = {
            key: value[:_LONGEST_TEXT] if isinstance(value, str) else value for key, value in run.items()
        }
        row = RunRow(**fields)
        known = self.runs.get(row.run_id)
        row.since_unix_s = time.time() if known is None else known.since_unix_s
        row.heard_s = time.monotonic()
        self.runs[row.run_id] = row
        return row

    def _floor_s(self, row: RunRow) -> float:
        """The least virtual time of the other runs that want devices; its own where there are none."""
        others = [
            other.virtual_s
            for other in self.runs.values()
            if other is not row and other.under_way and row.heard_s - other.heard_s < _SILENT_S
        ]
        return min(others, default=row.virtual_s)

    def _place_in_queue(self, row: RunRow) -> tuple[int, float]:
        """How many tasks come before the run's next one, and the seconds that they will take; 0 when one runs."""
        places = [
            self._place_on(worker, row.run_id)
            for worker in self._scheduler.workers.values()
            if (worker.extra.get(ANNOUNCEMENT) or {}).get("device")
        ]
        return min((place for place in places if place is not None), default=(0, 0.0))

    def _place_on(self, worker: Any, run_id: str) -> tuple[int, float] | None:
        told = worker.metrics.get(ANNOUNCEMENT) or {}
        if told.get("run_id") == run_id:
            return 0, 0.0
        ahead_s = 0.0
        for position, task in enumerate(sorted(worker.processing, key=_priority)):
            owner = run_of(task.key)
            if owner == run_id:
                return position, ahead_s
            ahead_s += self.runs[owner].estimate_s if owner in self.runs else 0.0
        return None

    async def state(self) -> bytes:
        """For people: workers and devices with what each has to do, and runs with their place in the queue."""
        workers: dict[str, FarmWorkerState] = {}
        devices = []
        builds: Counter[str] = Counter()
        for address, dask_worker in self._scheduler.workers.items():
            if (told := dask_worker.extra.get(ANNOUNCEMENT)) is None:
                continue
            queue = [run_of(task.key) for task in sorted(dask_worker.processing, key=_priority)]
            building = 0 if told["device"] else len(queue)
            worker = FarmWorkerState(told["worker"], told["worker_id"], address, told["build_slots"], building)
            if told["device"]:
                workers.setdefault(worker.worker_id, worker)
                devices.append(_device(told, dask_worker.metrics.get(ANNOUNCEMENT) or {}, queue))
            else:
                workers[worker.worker_id] = worker
                builds.update(queue)
        runs = sorted(self.runs.values(), key=lambda row: row.since_unix_s)
        state = FarmState(
            workers=tuple(sorted(workers.values(), key=lambda row: row.name)),
            devices=tuple(sorted(devices, key=lambda row: row.device.name)),
            runs=tuple(self._run(row, builds[row.run_id]) for row in runs),
        )
        return msgspec.msgpack.encode(state)

    def _run(self, row: RunRow, building: int) -> FarmRunState:
        position, start_s = self._place_in_queue(row) if row.under_way else (0, 0.0)
        return FarmRunState(
            run_id=row.run_id,
            user=row.user,
            title=row.title,
            priority=row.priority,
            virtual_s=row.virtual_s,
            under_way=row.under_way,
            position=position,
            start_s=start_s,
            building=building,
            since_unix_s=row.since_unix_s,
            silent_s=time.monotonic() - row.heard_s,
        )


def _device(told: Mapping[str, Any], report: Mapping[str, Any], queue: list[str]) -> FarmDeviceState:
    run_id = report.get("run_id", "")
    if run_id in queue:
        queue.remove(run_id)
    return FarmDeviceState(
        device=FarmDevice.from_fields(told["device"]),
        worker=told["worker"],
        run_id=run_id,
        task=report.get("task", ""),
        busy_s=report.get("busy_s", 0.0),
        is_held=report.get("held", False),
        users=tuple(report.get("users", ())),
        waiting=tuple(queue),
        failures=tuple(DeviceFailure(*failure) for failure in report.get("failures", ())),
    )


def _priority(task: Any) -> Any:
    return task.priority


def task_key(run_id: str, resource: str) -> str:
    """A name for a new task.

    Dask keeps something for ever of each word that stands before a key's first dash, so that is one of two.
    """
    kind = "build" if resource == BUILD_RESOURCE else "measure"
    return f"{kind}-{run_id}:{resource}:{secrets.token_hex(8)}"


def run_of(key: object) -> str:
    """The run that a task belongs to."""
    return str(key).partition("-")[2].partition(":")[0]
