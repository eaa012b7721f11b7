"""What a machine puts into a farm: its devices and its cores. A run on one machine is a farm with one member."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from distributed.worker import DEFAULT_METRICS, DEFAULT_STARTUP_INFORMATION

from autotune_loop.execute.lease_pool import DeviceHolds, OpenRemote
from autotune_loop.execute.run_files import FilePart, RunFiles
from autotune_loop.execute.run_ticket import RunTicket
from autotune_loop.execute.run_worker import RunWorker
from autotune_loop.execute.worker_plugin import MemberPlugin, told
from autotune_loop.farm.device import ANNOUNCEMENT, BUILD_RESOURCE, ServedDevice
from autotune_loop.specification.run_context import RunContext
from devices.device import Device
from devices.local.cores import CorePlan
from devices.local.open_device import open_transport
from devices.remote_place import ConnectionSettings
from devices.transport import Transport
from targets.errors import DeviceError, FarmError

# What a member tells the scheduler is under this name.
_FAILURES_KEPT = 10
_LONGEST_MESSAGE = 500


def device_resource(device_name: str) -> str:
    """The resource label of a device: a measurement holds one of it, of as many as the device times at once."""
    return f"device:{device_name}"


class RunNotKnownError(Exception):
    """A task of a run whose ticket has not been sent to this member; the engine sends it and asks again."""


@dataclass(frozen=True)
class MemberPlace:
    """What of its machine a member works with.

    Attributes:
        cache_folder: content-addressed files kept across runs.
        work_folder: scratch space, with a folder for each run.
        lock_folder: where building and measuring take turns.
        environment: of every child process.
        cores: which cores build, and which measure on this machine.
        connections: what of this machine SSH and ADB connections are made with; None where there are none.
        memory_bytes: what one build may use at most; None leaves that to the run.
        ndk_root: the Android NDK to link with; None where there is none.
    """

    cache_folder: Path
    work_folder: Path
    lock_folder: Path
    environment: Mapping[str, str] = field(repr=False)
    cores: CorePlan
    connections: ConnectionSettings | None = None
    memory_bytes: int | None = None
    ndk_root: Path | None = None


@dataclass
class _Record:
    """What is told of a device.

    Attributes:
        run_id, task, since_s: the task under way, and the monotonic time at which it began.
        failures: the last ones: Unix time, run, message.
    """

    run_id: str = ""
    task: str = ""
    since_s: float = 0.0
    failures: deque[tuple[float, str, str]] = field(default_factory=lambda: deque(maxlen=_FAILURES_KEPT))


@dataclass(frozen=True)
class _Guest:
    """A run of another machine.

    Attributes:
        folder: everything of it here; deleted with its end.
    """

    ticket: RunTicket
    folder: Path
    files: RunFiles


class FarmMember:
    """One process of a farm: it holds each device's lease, and what is open for each run.

    Args:
        name: as people call it, unique in the farm; usually the host's name.
        devices: what it measures on; their names are unique in the farm.
        build_slots: candidates that it builds at once; 0 for none.
        open_remote: makes a device's connection.
        idle_lease_s: how long a device's lease is kept when no run uses the device any more.
    """

    def __init__(
        self,
        name: str,
        place: MemberPlace,
        devices: Sequence[ServedDevice],
        build_slots: int,
        open_remote: OpenRemote,
        idle_lease_s: float = 10.0,
    ) -> None:
        self.name = name
        self.id = secrets.token_hex(8)
        self.place = place
        self.build_slots = build_slots
        self._devices = {served.announced.name: served for served in devices}
        self._holds = DeviceHolds(open_remote, idle_lease_s)
        self._lock = threading.Lock()
        self._runs: dict[str, RunWorker] = {}
        self._guests: dict[str, _Guest] = {}
        self._records = {name: _Record() for name in self._devices}
        self._closed = False

    @property
    def device_names(self) -> list[str]:
        """The devices that it serves."""
        return list(self._devices)

    def worker_options(self) -> dict[str, dict[str, Any]]:
        """Keyword arguments of a Dask worker for each device and one for builds, by the workers' names.

        Each is a worker of its own, because a worker whose most urgent task waits for one resource lets tasks for all
        others wait, too. A device's name is part of the worker's: a scheduler takes no second one.
        """
        shared: dict[str, Any] = {"local_directory": str(self.place.work_folder / "dask"), "memory_limit": 0}
        keeper = MemberPlugin(self, keeps_house=True)
        named = {
            device_resource(name): (device_resource(name), served.device.at_once)
            for name, served in self._devices.items()
        }
        if self.build_slots:
            named[f"{BUILD_RESOURCE}:{self.name}"] = (BUILD_RESOURCE, self.build_slots)
        return {
            worker_name: {
                **shared,
                "name": worker_name,
                "nthreads": slots,
                "resources": {resource: slots},
                "plugins": (keeper if position == 0 else MemberPlugin(self),),
                "startup_information": {
                    **DEFAULT_STARTUP_INFORMATION,
                    ANNOUNCEMENT: partial(told, self.announcement, worker_name),
                },
                "metrics": {**DEFAULT_METRICS, ANNOUNCEMENT: partial(told, self.report, worker_name)},
            }
            for position, (worker_name, (resource, slots)) in enumerate(named.items())
        }

    def announcement(self, worker_name: str) -> dict[str, Any]:
        """What the scheduler is told when a worker of this member joins: plain values only."""
        device = self._devices.get(worker_name.removeprefix("device:"))
        return {
            "member": self.name,
            "member_id": self.id,
            "build_slots": 0 if device else self.build_slots,
            "device": None if device is None else device.announced.to_fields(),
        }

    def report(self, worker_name: str) -> dict[str, Any]:
        """How a worker's device is just now: plain values only; goes with every heartbeat."""
        record = self._records.get(worker_name.removeprefix("device:"))
        if record is None:
            return {}
        users = self._holds.users(worker_name.removeprefix("device:"))
        return {
            "run_id": record.run_id,
            "task": record.task,
            "busy_s": time.monotonic() - record.since_s if record.run_id else 0.0,
            "held": users is not None,
            "users": users or [],
            "failures": [list(failure) for failure in record.failures],
        }

    def adopt_run(self, run_id: str, context: RunContext) -> None:
        """Make ready for a run of this machine, whose files are used as they lie there."""
        with self._lock:
            self._runs[run_id] = self._run_worker(run_id, context, None)

    def receive_ticket(self, ticket: RunTicket) -> None:
        """Make ready for a run of another machine; nothing when it is known already."""
        with self._lock:
            if self._closed:
                raise FarmError(f"{self.name} is leaving the farm.")
            if ticket.run_id not in self._guests:
                folder = self.place.work_folder / "runs" / ticket.run_id
                self._guests[ticket.run_id] = _Guest(ticket, folder, RunFiles(folder / "files"))

    def receive_file(self, run_id: str, part: FilePart) -> None:
        """Take a piece of a file that a run's tasks need.

        Raises:
            RunNotKnownError: the run has ended here.
            FarmError: the file was damaged on the way.
        """
        self.files_of(run_id).receive(part)

    def files_of(self, run_id: str) -> RunFiles:
        """The files that a run of another machine has sent here.

        Raises:
            RunNotKnownError: its ticket has not come yet.
        """
        try:
            return self._guests[run_id].files
        except KeyError:
            raise RunNotKnownError(run_id) from None

    def is_guest(self, run_id: str) -> bool:
        """Whether a run is of another machine, whose paths mean nothing here."""
        return run_id in self._guests

    def run(self, run_id: str) -> RunWorker:
        """What is open for a run.

        Raises:
            RunNotKnownError: its ticket has not come yet.
            MissingFileError: a file that every task needs has not come yet.
        """
        with self._lock:
            if run_id not in self._runs:
                if run_id not in self._guests:
                    raise RunNotKnownError(run_id)
                guest = self._guests[run_id]
                self._runs[run_id] = self._run_worker(run_id, self._guest_context(guest), guest.ticket.threads)
            return self._runs[run_id]

    def _guest_context(self, guest: _Guest) -> RunContext:
        """The run's context with what is this machine's put in."""
        context, place = guest.ticket.context, self.place
        tasks, inputs = context.tasks, context.inputs
        if self.build_slots:
            tasks = tuple(
                replace(task, reference=replace(task.reference, file=guest.files.path(key)))
                for task, key in zip(tasks, guest.ticket.generators, strict=True)
            )
        if self._devices:
            files = {name: guest.files.path(key) for name, key in guest.ticket.inputs.items()}
            inputs = replace(inputs, files=files)
        limits = context.limits
        if place.memory_bytes is not None:
            limits = replace(limits, memory_bytes=min(limits.memory_bytes, place.memory_bytes))
        return replace(
            context,
            tasks=tasks,
            inputs=inputs,
            limits=limits,
            connections=place.connections,
            cores=place.cores,
            cache_folder=place.cache_folder,
            work_folder=guest.folder,
            lock_folder=place.lock_folder,
            environment=place.environment,
            ndk_root=place.ndk_root,
        )

    def _run_worker(self, run_id: str, context: RunContext, threads: int | None) -> RunWorker:
        def find_device(name: str) -> tuple[Device, Callable[[], Transport]]:
            device = self.device(name)
            if threads is not None:
                device = replace(device, threads=threads)
            return device, lambda: self._open_transport(device, run_id, context)

        return RunWorker(context, find_device)

    @property
    def runs(self) -> list[str]:
        """The runs that are known here."""
        return list({**self._runs, **self._guests})

    @property
    def guests(self) -> list[str]:
        """Those of other machines."""
        return list(self._guests)

    def interrupt(self, run_id: str) -> None:
        """Kill what a run's tasks have started here; nothing when it is not known."""
        run = self._runs.get(run_id)
        if run is not None:
            run.interrupt()

    def end_run(self, run_id: str) -> None:
        """Stop what a run still does here, and close what is open for it; nothing when it is not known."""
        with self._lock:
            run, guest = self._runs.pop(run_id, None), self._guests.pop(run_id, None)
        if run is not None:
            run.close()
        if guest is not None:
            shutil.rmtree(guest.folder, ignore_errors=True)
        self._holds.leave(run_id)

    def close_idle(self) -> None:
        """Give back the devices that no run has used for a while."""
        self._holds.close_idle()

    def close(self) -> None:
        """End every run and give every device back."""
        with self._lock:
            self._closed = True
        for run_id in self.runs:
            self.end_run(run_id)
        self._holds.close()
        shutil.rmtree(self.place.work_folder / "dask", ignore_errors=True)

    def device(self, name: str) -> Device:
        """The device of that name.

        Raises:
            DeviceError: it is not one of this member's.
        """
        try:
            return self._devices[name].device
        except KeyError:
            raise DeviceError(f"{name} is not a device of {self.name}.") from None

    def _open_transport(self, device: Device, run_id: str, context: RunContext) -> Transport:
        """A run's own transport to a device; all of a remote device share its connection and its lease."""
        if device.remote is None:
            folder, cores = context.work_folder / "device", context.cores.measure or None
            return open_transport(device, context.profile, folder, context.environment, cores)
        return self._holds.share(device, run_id)

    @contextlib.contextmanager
    def busy(self, device_name: str | None, run_id: str, task: str) -> Iterator[None]:
        """Note that a task holds a device."""
        record = None if device_name is None else self._records.get(device_name)
        if record is not None:
            record.run_id, record.task, record.since_s = run_id, task, time.monotonic()
        try:
            yield
        finally:
            if record is not None:
                record.run_id = record.task = ""

    def failed(self, device_name: str, run_id: str, message: str) -> None:
        """Note that a device has failed."""
        record = self._records.get(device_name)
        if record is not None:
            record.failures.append((time.time(), run_id, message[:_LONGEST_MESSAGE]))
