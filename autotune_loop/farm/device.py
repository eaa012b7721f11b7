"""A device as a farm knows it: what can be chosen by, and what the search must know of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from devices.device import Clock, Device
from devices.inventory.inventory import DeviceMachine, InventoryDevice
from targets.errors import FarmError

# The key under which a worker tells the scheduler of itself, and the resource that builds take.
ANNOUNCEMENT = "sdk"
BUILD_RESOURCE = "build"


def device_resource(device_name: str) -> str:
    """The resource label of a device: a measurement holds one of it, of as many as the device times at once."""
    return f"device:{device_name}"


@dataclass(frozen=True)
class FarmDevice:
    """One slot of one device, as its host announces it; plain values, so that it can be sent as such.

    Attributes:
        kind: 'ssh' or 'adb'.
        core_count: the cores that kernels run on; 0 for all.
        machine: what was probed, for the search.
    """

    name: str
    profile_name: str
    kind: str
    labels: tuple[str, ...] = ()
    clock: Clock = Clock.WALL
    core_count: int = 0
    machine: DeviceMachine = field(default_factory=DeviceMachine)

    def to_fields(self) -> dict[str, Any]:
        """As a message carries it."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> FarmDevice:
        """Read what `to_fields` gave, on another machine.

        Raises:
            FarmError: it is not that.
        """
        try:
            return msgspec.convert(fields, cls)
        except msgspec.ValidationError as error:
            raise FarmError(f"A worker describes one of its devices in a way that cannot be read: {error}.") from error


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
