"""What a farm's scheduler knows of runs beside their tasks: who they are, and how much they have had."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from distributed import Scheduler, SchedulerPlugin

from halide_autotune.autotune_loop.farm.device import (
    ANNOUNCEMENT,
    BUILD_RESOURCE,
    Announcement,
    DeviceReport,
    read_announcement,
)
from halide_autotune.autotune_loop.farm.quiet_dask import forget_keys
from halide_autotune.autotune_loop.farm.state import (
    FarmDeviceState,
    FarmRun,
    FarmRunState,
    FarmState,
    FarmWorkerState,
    PutOutWorker,
)
from halide_autotune.autotune_loop.farm.told import read_told
from halide_autotune.targets.errors import FarmError

PLUGIN_NAME = "sdk-ledger"
# A run that is not heard of for so long takes no part in the queue; its client says when it ends.
_SILENT_S = 30.0
_LONGEST_TEXT = 200
_MOST_OUT = 100


@dataclass(frozen=True)
class _Row:
    """A run in the book.

    Attributes:
        since_unix_s: when it joined.
        heard_s: monotonic time at which it was last heard of.
    """

    run: FarmRun
    since_unix_s: float
    heard_s: float


class FarmLedger(SchedulerPlugin):  # type: ignore[misc] # Dask has no type information
    """Answers runs and workers; forgets a run with its client. Lives on the scheduler's loop."""

    name = PLUGIN_NAME

    def __init__(self) -> None:
        self._rows: dict[str, _Row] = {}
        # Another one than that of the scheduler before, whose workers a run may still know.
        self._version = secrets.randbits(48)
        self._put_out: dict[str, PutOutWorker] = {}
        # By the address of each of the farm's Dask workers: they say it once, and every beat needs it.
        self._announced: dict[str, Announcement] = {}

    async def start(self, scheduler: Scheduler) -> None:
        """Called by Dask when the scheduler starts."""
        self._scheduler = scheduler
        scheduler.handlers["sdk_beat"] = self.beat
        scheduler.handlers["sdk_live_runs"] = self.live_runs
        scheduler.handlers["sdk_state"] = self.state

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        """Called by Dask when a worker joins."""
        self._version += 1
        with contextlib.suppress(KeyError, FarmError):  # it is not a farm's, or says what cannot be
            self._announced[worker] = read_announcement(scheduler.workers[worker].extra[ANNOUNCEMENT])
        self._put_out.pop(self.announced(worker).worker, None)

    def remove_worker(self, scheduler: Scheduler, worker: str, **others: Any) -> None:
        """Called by Dask when a worker leaves."""
        self._version += 1
        self._announced.pop(worker, None)

    def announced(self, address: str) -> Announcement:
        """What a Dask worker says of itself; one that says nothing, or what cannot be, is called as Dask calls it."""
        told = self._announced.get(address)
        return told or Announcement(str(self._scheduler.workers[address].name), address, 0, None)

    def remove_client(self, scheduler: Scheduler, client: str) -> None:
        """Called by Dask when a client has ended, or its connection has."""
        self._rows = {run_id: row for run_id, row in self._rows.items() if row.run.client != client}

    def put_out(self, worker: PutOutWorker) -> None:
        """Note that a worker was put out, until it is back."""
        self._put_out.pop(worker.name, None)
        self._put_out[worker.name] = worker
        if len(self._put_out) > _MOST_OUT:
            del self._put_out[next(iter(self._put_out))]

    def why_out(self, name: str) -> str:
        """Why a worker is not in the farm; nothing where that is not known."""
        return self._put_out[name].reason if name in self._put_out else ""

    async def live_runs(self) -> list[str]:
        """For workers: the runs whose clients are there."""
        self._forget_silent()
        return list(self._rows)

    def _forget_silent(self) -> None:
        """Forget runs that were heard of after their client had gone, and then no more."""
        clients, now_s = self._scheduler.clients, time.monotonic()
        self._rows = {
            run_id: row
            for run_id, row in self._rows.items()
            if row.run.client in clients or now_s - row.heard_s < _SILENT_S
        }

    async def beat(self, run: dict[str, Any], known: int) -> dict[str, Any]:
        """For runs: what others have had, where this one stands in the queue, and the workers when they changed.

        Args:
            run: the fields of a FarmRun.
            known: the version of the list of workers that it has.
        """
        forget_keys()
        row = self._written_down(read_told(FarmRun, run))
        answer: dict[str, Any] = {
            "floor_s": self._floor_s(row),
            "version": self._version,
            "is_known": row.run.client in self._scheduler.clients,
        }
        if row.run.under_way:
            answer["position"], answer["start_s"] = self._place_in_queue(row.run.run_id)
        if known != self._version:
            answer["workers"] = {
                address: worker.extra[ANNOUNCEMENT]
                for address, worker in self._scheduler.workers.items()
                if ANNOUNCEMENT in worker.extra
            }
        return answer

    def _written_down(self, run: FarmRun) -> _Row:
        known = self._rows.get(run.run_id)
        run = replace(run, user=run.user[:_LONGEST_TEXT], title=run.title[:_LONGEST_TEXT])
        row = _Row(run, time.time() if known is None else known.since_unix_s, time.monotonic())
        self._rows[run.run_id] = row
        return row

    def _floor_s(self, row: _Row) -> float:
        """The least virtual time of the other runs that want devices; its own where there are none."""
        others = [
            other.run.virtual_s
            for other in self._rows.values()
            if other is not row and other.run.under_way and row.heard_s - other.heard_s < _SILENT_S
        ]
        return min(others, default=row.run.virtual_s)

    def _place_in_queue(self, run_id: str) -> tuple[int, float]:
        """How many tasks come before the run's next one, and the seconds that they will take; 0 when one runs."""
        places = [
            self._place_on(worker, run_id)
            for address, worker in self._scheduler.workers.items()
            if (told := self._announced.get(address)) is not None and told.device is not None
        ]
        return min((place for place in places if place is not None), default=(0, 0.0))

    def _place_on(self, worker: Any, run_id: str) -> tuple[int, float] | None:
        told = worker.metrics.get(ANNOUNCEMENT)
        if isinstance(told, Mapping) and told.get("run_id") == run_id:
            return 0, 0.0
        ahead_s = 0.0
        for position, task in enumerate(sorted(worker.processing, key=_priority)):
            owner = run_of(task.key)
            if owner == run_id:
                return position, ahead_s
            ahead_s += self._rows[owner].run.estimate_s if owner in self._rows else 0.0
        return None

    async def state(self) -> bytes:
        """For people: workers and devices with what each has to do, and runs with their place in the queue."""
        self._forget_silent()
        workers: dict[str, FarmWorkerState] = {}
        devices = []
        builds: Counter[str] = Counter()
        for address, dask_worker in self._scheduler.workers.items():
            told = self._announced.get(address)
            if told is None:
                continue
            queue = [run_of(task.key) for task in sorted(dask_worker.processing, key=_priority)]
            building = 0 if told.device else len(queue)
            worker = FarmWorkerState(told.worker, told.worker_id, address, told.build_slots, building)
            if told.device is not None:
                workers.setdefault(worker.worker_id, worker)
                report = _reported(dask_worker)
                if report.run_id in queue:
                    queue.remove(report.run_id)
                devices.append(FarmDeviceState(told.device, told.worker, report, tuple(queue)))
            else:
                workers[worker.worker_id] = worker
                builds.update(queue)
        rows = sorted(self._rows.values(), key=lambda row: row.since_unix_s)
        state = FarmState(
            workers=tuple(sorted(workers.values(), key=lambda row: row.name)),
            devices=tuple(sorted(devices, key=lambda row: row.device.name)),
            runs=tuple(self._run(row, builds[row.run.run_id]) for row in rows),
            put_out=tuple(self._put_out.values()),
        )
        return msgspec.msgpack.encode(state)

    def _run(self, row: _Row, building: int) -> FarmRunState:
        position, start_s = self._place_in_queue(row.run.run_id) if row.run.under_way else (0, 0.0)
        silent_s = time.monotonic() - row.heard_s
        return FarmRunState(row.run, position, start_s, building, row.since_unix_s, silent_s)


def _reported(dask_worker: Any) -> DeviceReport:
    """What a device does just now; nothing, where its worker says what cannot be."""
    try:
        return read_told(DeviceReport, dask_worker.metrics.get(ANNOUNCEMENT) or {})
    except FarmError:
        return DeviceReport()


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
