"""From --device, the inventory and the profile to the devices that are timed on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from halide_autotune.devices.device import Clock
from halide_autotune.devices.inventory.inventory import DeviceMachine, Inventory, InventoryDevice
from halide_autotune.devices.remote_place import AdbAddress, RemotePlace, SshAddress
from halide_autotune.sdk.select.device_choice import DeviceChoice, choose_devices, profile_of_devices
from halide_autotune.targets.errors import DeviceError, UsageError
from halide_autotune.targets.profile.loader import load_profile

PI = InventoryDevice("pi", "arm64", RemotePlace(SshAddress("pi.lab"), cores=(2, 3)), labels=("kitchen", "pi"))
PI_B = InventoryDevice(
    "pi-b",
    "arm64",
    RemotePlace(SshAddress("pi-b.lab")),
    labels=("pi",),
    machine=DeviceMachine(parallelism=3, l2_cache_bytes=524288),
)
SERVER = InventoryDevice("server", "x86-64", RemotePlace(SshAddress("server.lab"), cores=(0, 1, 2, 3)), slots=2)
PHONE = InventoryDevice("phone", "arm64-android", RemotePlace(AdbAddress("phone.lab")), emulated=True)
INVENTORY = Inventory(Path("devices.toml"), (PI, PI_B, SERVER, PHONE))


def choose(
    *names: str,
    target: str = "arm64",
    parallelism: int | None = None,
    busy: dict[str, str] | None = None,
    inventory: Inventory = INVENTORY,
) -> DeviceChoice:
    def find_busy(entries: Sequence[InventoryDevice]) -> dict[str, str]:
        slots = {name for entry in entries for name, _ in entry.places()}
        return {name: reason for name, reason in (busy or {}).items() if name in slots}

    return choose_devices(names, load_profile(target), parallelism, inventory, find_busy)


def chosen(choice: DeviceChoice) -> list[str]:
    return [device.name for device in choice.devices]


def test_devices_by_name_and_by_label() -> None:
    assert chosen(choose("pi-b", "pi")) == ["pi-b", "pi"]
    assert chosen(choose("label:pi")) == ["pi", "pi-b"]
    assert chosen(choose("label:kitchen", "pi")) == ["pi"], "each once"
    device = choose("pi").devices[0]
    assert (device.kind, device.clock, device.uses_host_cores) == ("ssh", Clock.WALL, False)
    assert device.remote is not None and device.remote.cores == (2, 3)
    assert choose("pi").note == ""


def test_threads_come_from_the_devices_cores_its_probe_or_the_profile() -> None:
    assert choose("pi").parallelism == 2
    assert choose("pi-b").parallelism == 3
    assert choose("pi-b").profile.machine.l2_cache_bytes == 524288
    assert choose("pi", parallelism=1).devices[0].threads == 1


def test_slots_are_devices_of_their_own() -> None:
    assert chosen(choose("server", target="x86-64")) == ["server.1", "server.2"]
    second = choose("server.2", target="x86-64").devices
    assert [device.name for device in second] == ["server.2"]
    assert second[0].remote is not None and second[0].remote.cores == (2, 3) and second[0].remote.slot == 1


def test_an_emulated_device_says_so() -> None:
    assert choose("phone", target="arm64-android").devices[0].clock is Clock.EMULATED


def test_without_names_the_free_devices_of_the_profile() -> None:
    choice = choose(busy={"pi": "leased by ann@lab."})
    assert chosen(choice) == ["pi-b"]
    assert choice.note == "Timing on pi-b, free in devices.toml. Left out: pi (leased by ann@lab)."
    assert chosen(choose(target="x86-64", busy={"server.1": "leased"})) == ["server.2"]


def test_with_none_free_the_emulator_and_a_message() -> None:
    choice = choose(busy={"pi": "leased by ann@lab", "pi-b": "no answer"})
    assert chosen(choice) == ["qemu"] and choice.devices[0].is_emulated
    expected = "Timing on the emulator: no device of arm64 is free: pi (leased by ann@lab); pi-b (no answer)."
    assert choice.note == expected
    nothing = choose(inventory=Inventory(Path("devices.toml")))
    assert nothing.note == "Timing on the emulator: no device of arm64 is in the inventory."


def test_this_machine_needs_no_message() -> None:
    choice = choose(target="host", inventory=Inventory(Path("devices.toml")))
    assert chosen(choice) == ["local"] and choice.note == ""
    assert 1 <= choice.parallelism <= len(os.sched_getaffinity(0))
    assert choose("local", target="host", parallelism=3).parallelism == 3


def test_emulated_and_real_devices_are_not_mixed() -> None:
    fake = replace(PI_B, name="fake", emulated=True)
    inventory = Inventory(Path("devices.toml"), (PI, fake))
    with pytest.raises(UsageError, match="Emulated and real devices cannot share a run"):
        choose("pi", "fake", inventory=inventory)
    assert chosen(choose(inventory=inventory)) == ["qemu"]
    assert "emulated" in choose(inventory=inventory).note and "--device" in choose(inventory=inventory).note


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["server"], "server has profile x86-64, not arm64"),
        (["pi", "qemu"], "cannot be combined with another device"),
        (["pi-c"], "nearest is 'pi-b'"),
        (["label:garage"], "has the label 'garage'"),
    ],
)
def test_what_cannot_be_is_one_message(names: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        choose(*names)


def test_parallelism_and_code_must_fit() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        choose("pi", parallelism=0)
    with pytest.raises(DeviceError, match="cannot run arm-64 code"):
        choose("local")


def test_devices_name_their_profile() -> None:
    assert profile_of_devices(["pi", "label:pi"], INVENTORY) == "arm64"
    assert profile_of_devices(["qemu"], INVENTORY) is None and profile_of_devices([], INVENTORY) is None
    with pytest.raises(UsageError, match="different profiles"):
        profile_of_devices(["pi", "server"], INVENTORY)


@pytest.mark.parametrize("name", ["moon", "", "qemu"])
def test_a_device_that_there_is_not_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        choose(name, target="host")
