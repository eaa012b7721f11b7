"""What a worker tells of itself and its devices. Dask carries these records as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from halide_autotune.autotune_loop.farm.told import Count, DurationS, read_told
from halide_autotune.devices.agent.protocol import Printable
from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.inventory.inventory import DeviceMachine, InventoryDevice

# The key under which a Dask worker has its Announcement and its DeviceReport, and the resource that builds take.
ANNOUNCEMENT = "sdk"
BUILD_RESOURCE = "build"


def device_resource(device_name: str) -> str:
    """The resource label of a device: a measurement holds one of it, of as many as the device times at once."""
    return f"device:{device_name}"


@dataclass(frozen=True)
class FarmDevice:
    """One slot of one device: what it can be chosen by, and what the search must know of it.

    Attributes:
        kind: 'ssh' or 'adb'.
        core_count: the cores that kernels run on; 0 for all.
        machine: what was probed, for the search.
    """

    name: Printable
    profile_name: Printable
    kind: Printable
    labels: tuple[Printable, ...] = ()
    clock: Clock = Clock.WALL
    core_count: Count = 0
    machine: DeviceMachine = field(default_factory=DeviceMachine)


@dataclass(frozen=True)
class Announcement:
    """What each of a worker's Dask workers says when it joins.

    Attributes:
        worker, worker_id: the worker's name, and that of its process.
        build_slots: candidates that it builds at once; 0 for a device's.
        device: the one that it is for; None for builds.
    """

    worker: Printable
    worker_id: Printable
    build_slots: Count
    device: FarmDevice | None


def read_announcement(told: object) -> Announcement:
    """Return what a Dask worker says of itself, from the plain values that Dask carries.

    Raises:
        FarmError: it says what cannot be.
    """
    return read_told(Announcement, told)


@dataclass(frozen=True)
class DeviceFailure:
    """A failure of a device, one of its last few.

    Attributes:
        unix_s: when.
        run_id: of the run that met it.
    """

    unix_s: DurationS
    run_id: Printable
    message: Printable


@dataclass(frozen=True)
class DeviceReport:
    """What a device does just now.

    Attributes:
        run_id, task, busy_s: for whom, what, and for how long; empty and 0 when it does nothing.
        is_held: its lease is the farm's just now.
        users: the runs that have it open.
        failures: the oldest first.
    """

    run_id: Printable = ""
    task: Printable = ""
    busy_s: DurationS = 0.0
    is_held: bool = False
    users: tuple[Printable, ...] = ()
    failures: tuple[DeviceFailure, ...] = ()

    @property
    def state(self) -> str:
        """'busy', 'held' (open for a run, or given back soon) or 'free'."""
        return "busy" if self.run_id else "held" if self.is_held else "free"


@dataclass(frozen=True)
class ServedDevice:
    """A device in the hands of the process that measures on it.

    Attributes:
        device: how it is reached; its threads are each run's own matter.
    """

    announced: FarmDevice
    device: Device


def served_devices(entries: Sequence[InventoryDevice]) -> tuple[ServedDevice, ...]:
    """Every slot of the inventory's devices."""
    served = []
    for entry in entries:
        for device in entry.devices(threads=1):
            assert device.remote is not None, "devices of an inventory are remote"
            announced = FarmDevice(
                name=device.name,
                profile_name=entry.profile_name,
                kind=device.kind,
                labels=entry.labels,
                clock=device.clock,
                core_count=len(device.remote.cores),
                machine=entry.machine,
            )
            served.append(ServedDevice(announced, device))
    return tuple(served)
