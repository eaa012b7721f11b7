"""The devices a user has: what `devices.toml` says, as plain frozen values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.remote_place import RemotePlace, SshAddress, UrlAddress
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.profile.profile import TargetProfile
from halide_autotune.targets.values.checks import nearest_hint, whole_number
from halide_autotune.targets.values.records import plain

_cache_bytes = whole_number(1, 2**40)

Fact = bool | int | float | str | tuple[bool | int | float | str, ...]

# This machine, its emulator and Qualcomm's simulator.
RESERVED_NAMES = ("local", "qemu", "hexagon-sim")


@dataclass(frozen=True)
class DeviceMachine:
    """What a device's own hardware says about its profile's machine parameters; None keeps the profile's."""

    parallelism: Annotated[int | None, whole_number(1, 65536)] = None
    l1_data_cache_bytes: Annotated[int | None, _cache_bytes] = None
    l2_cache_bytes: Annotated[int | None, _cache_bytes] = None
    last_level_cache_bytes: Annotated[int | None, _cache_bytes] = None

    def known(self) -> dict[str, Any]:
        """Return what is known of it, as the table `machine` of the file has it."""
        return {key: value for key, value in plain(self).items() if value is not None}


@dataclass(frozen=True)
class InventoryDevice:
    """One device of the inventory.

    Attributes:
        name: as the user calls it.
        profile_name: the target profile it has.
        place: the whole device, with all the cores that kernels run on; its slots share them.
        labels: words that choose several devices at once.
        slots: kernels that may be timed on it at the same time, each on its own share of the cores.
        emulated: its times are an emulator's.
        machine: what was probed, for the search.
        probed: what was probed, for people.
    """

    name: str
    profile_name: str
    place: RemotePlace
    labels: tuple[str, ...] = ()
    slots: int = 1
    emulated: bool = False
    machine: DeviceMachine = DeviceMachine()
    probed: tuple[tuple[str, Fact], ...] = field(default=(), repr=False)

    @property
    def transport(self) -> str:
        """'ssh', 'adb', or the name of a package's transport."""
        address = self.place.address
        if isinstance(address, UrlAddress):
            return address.transport
        return "ssh" if isinstance(address, SshAddress) else "adb"

    @property
    def slot_cores(self) -> int:
        """The cores that one slot's kernels run on; 0 for all."""
        return len(self.place.cores) // self.slots

    def places(self) -> tuple[tuple[str, RemotePlace], ...]:
        """Return each slot's name and place: `pi5` alone, else `pi5.1`, `pi5.2` …, each with its share of the cores."""
        share = self.slot_cores
        cores = [self.place.cores[slot * share : (slot + 1) * share] for slot in range(self.slots)]
        return tuple(
            (self.name if self.slots == 1 else f"{self.name}.{slot + 1}", replace(self.place, slot=slot, cores=own))
            for slot, own in enumerate(cores)
        )

    def devices(self, threads: int) -> tuple[Device, ...]:
        """Return each slot as a device that times kernels.

        Args:
            threads: Halide threads a kernel runs with.
        """
        clock = Clock.EMULATED if self.emulated else Clock.WALL
        return tuple(
            Device(name, self.transport, self.profile_name, clock, threads, uses_host_cores=False, remote=place)
            for name, place in self.places()
        )


@dataclass(frozen=True)
class Inventory:
    """All devices, in the order of the file.

    Attributes:
        file: where they are written; it need not exist when there are none.
    """

    file: Path
    devices: tuple[InventoryDevice, ...] = ()

    def find(self, name: str) -> InventoryDevice:
        """Return the device of that name.

        Raises:
            UsageError: there is none.
        """
        for device in self.devices:
            if device.name == name:
                return device
        if name in RESERVED_NAMES:
            raise UsageError(
                f"{name!r} is no device of the inventory: it is this machine, or its emulator.",
                next_step="It needs no entry: `sdk doctor` says whether it is ready.",
            )
        if not self.devices:
            raise UsageError(
                f"There is no device {name[:80]!r}: {self.file} names none.", next_step="Add it: `sdk devices add`."
            )
        hint = nearest_hint(name, [device.name for device in self.devices])
        raise UsageError(
            f"There is no device {name[:80]!r} in {self.file}{hint}.", next_step="`sdk devices` lists them."
        )

    def find_slots(self, name: str) -> tuple[InventoryDevice, tuple[RemotePlace, ...]]:
        """Return the device and the slots that the name of a device (all of them) or of one slot means.

        Raises:
            UsageError: it means none.
        """
        for device in self.devices:
            for slot_name, place in device.places():
                if slot_name == name:
                    return device, (place,)
        device = self.find(name)
        return device, tuple(place for _, place in device.places())

    def choose(self, words: Sequence[str]) -> tuple[InventoryDevice, ...]:
        """Return the devices that names and `label:LABEL` mean, each once, in the order asked for.

        Raises:
            UsageError: a word means none.
        """
        chosen: dict[str, InventoryDevice] = {}
        for word in words:
            label = word.removeprefix("label:")
            for device in self.with_label(label) if label != word else (self.find(word),):
                chosen[device.name] = device
        return tuple(chosen.values())

    def with_label(self, label: str) -> tuple[InventoryDevice, ...]:
        """Return the devices that have the label.

        Raises:
            UsageError: there is none.
        """
        found = tuple(device for device in self.devices if label in device.labels)
        if not found:
            hint = nearest_hint(label, {label for device in self.devices for label in device.labels})
            raise UsageError(
                f"No device in {self.file} has the label {label[:80]!r}{hint}.", next_step="`sdk devices` lists them."
            )
        return found


def machine_profile(profile: TargetProfile, device: InventoryDevice) -> TargetProfile:
    """Return the profile with what the device's own hardware says laid over it: see `fitted_profile`."""
    return fitted_profile(profile, device.machine, device.slot_cores)


def fitted_profile(profile: TargetProfile, known: DeviceMachine, slot_cores: int) -> TargetProfile:
    """Return the profile with what a device's own hardware says laid over it.

    The search sees no more cores than a slot of the device has. What was probed is a processor's: of a card, which is
    asked when a run begins, it says nothing.

    Args:
        slot_cores: the cores that one slot's kernels run on; 0 for all.
    """
    if profile.machine.gpu is not None:
        return profile
    machine = replace(profile.machine, **known.known())
    if slot_cores:
        # Without a probe the profile's figure is of another machine, and the cores say how many there are.
        cores = slot_cores if known.parallelism is None else min(slot_cores, machine.parallelism)
        machine = replace(machine, parallelism=cores)
    return replace(profile, machine=machine)
