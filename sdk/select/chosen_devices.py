"""The devices that a command times on, how they are reached, and where their health is recorded."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from halide_autotune.autotune_loop.farm.use import FarmUse
from halide_autotune.autotune_loop.specification.options import DeviceOptions
from halide_autotune.autotune_loop.specification.workspace import Workspace
from halide_autotune.devices.device_link import TRANSPORTS
from halide_autotune.devices.device_trouble import DeviceTrouble
from halide_autotune.devices.health.health import clear_health, record_unhealthy
from halide_autotune.devices.inventory.inventory import Inventory, InventoryDevice
from halide_autotune.devices.lease.token import LeaseToken, read_token
from halide_autotune.devices.remote.open import open_link
from halide_autotune.devices.remote_place import AdbAddress, ConnectionSettings, PasswordSource, SshAddress, UrlAddress
from halide_autotune.sdk.inventory.connections import ask_on_terminal, connection_settings, health_folder
from halide_autotune.sdk.inventory.device_access import device_states, is_taken_by_hand
from halide_autotune.sdk.inventory.device_listing import DeviceState
from halide_autotune.sdk.inventory.lookup import open_inventory
from halide_autotune.sdk.select.card_choice import fit_card
from halide_autotune.sdk.select.clock_choice import fit_clock
from halide_autotune.sdk.select.device_choice import DeviceChoice, choose_devices, profile_of_devices
from halide_autotune.sdk.select.hexagon_choice import named_hexagon_sdk, tell_of_sdk
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import DeviceError, SdkError, UsageError
from halide_autotune.targets.process.c_toolchain import CToolchain
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.profile.profile import TargetProfile
from halide_autotune.targets.profile.target_features import with_target_features
from halide_autotune.targets.toolchain.c_toolchain import open_toolchain

DEFAULT_TARGET = "host"


@dataclass(frozen=True)
class ChosenDevices:
    """A choice of devices, and how to use them.

    Attributes:
        connections: None if the only device is this machine.
        report_health: records that a device is unhealthy, or healthy again.
        farm: the farm that has them; None if this machine reaches them itself.
    """

    choice: DeviceChoice
    connections: ConnectionSettings | None
    report_health: Callable[[str, DeviceTrouble | None], None]
    farm: FarmUse | None = None

    def workspace(self, settings: Settings) -> Workspace:
        """This machine, as work on the devices needs it."""
        return Workspace(
            cache_folder=settings.cache_folder,
            lock_folder=settings.cache_folder / "locks",
            environment=settings.environment,
            connections=self.connections,
            ndk_root=settings.ndk_root,
        )

    def open_toolchain(self, settings: Settings) -> CToolchain:
        """Return the toolchain that links programs for the devices, after checking that it works.

        Raises:
            ToolchainError: it is missing or broken.
        """
        devices = self.choice.devices
        ndk_root = None if any(device.remote is None for device in devices) else settings.ndk_root
        toolchain = open_toolchain(self.choice.profile, settings.cache_folder, ndk_root, devices[0].hexagon_sdk)
        toolchain.version()
        return toolchain


def asked_profile(asked: DeviceOptions, inventory: Inventory, settings: Settings) -> TargetProfile:
    """The profile that is asked for: by its name, by the devices that have it, or this machine's.

    Raises:
        UsageError, ProfileError, DeviceError: as `load_profile`, `with_target_features` and `profile_of_devices`.
    """
    target = asked.target or profile_of_devices(asked.device, inventory) or DEFAULT_TARGET
    return with_target_features(load_profile(target, settings.profile_folder), asked.target_features)


def find_devices(asked: DeviceOptions, settings: Settings, tell: Callable[[str], None]) -> ChosenDevices:
    """The devices that are asked for; without a target, for the one that they have, else this machine.

    Args:
        tell: shown what a person must do at a device.

    Raises:
        UsageError, ProfileError, DeviceError, EmulatorError, ToolchainError: as `choose_devices`, `open_inventory`,
            `load_profile`, `with_target_features`, `named_hexagon_sdk`, `fit_clock` and `fit_card`.
    """
    names, parallelism, hexagon_sdk_root = asked.device, asked.parallelism, asked.hexagon_sdk_root
    inventory = open_inventory(asked.inventory, settings)
    profile = asked_profile(asked, inventory, settings)
    sdk = named_hexagon_sdk(profile, hexagon_sdk_root, settings)
    choice = choose_devices(names, profile, parallelism, inventory, lambda entries: busy_slots(entries, settings), sdk)
    choice = fit_clock(tell_of_sdk(choice, hexagon_sdk_root), asked.clock, settings)
    if not choice.entries:
        return ChosenDevices(fit_card(choice, parallelism, None, settings), None, lambda name, trouble: None)
    for entry in choice.entries:
        if isinstance(entry.place.address, AdbAddress):
            _introduce(entry, settings, tell)
        if isinstance(entry.place.address, UrlAddress):
            TRANSPORTS.load(entry.transport)
    connections = connection_settings(settings, _ask_passwords(choice.entries))
    choice = fit_card(choice, parallelism, connections, settings)
    return ChosenDevices(choice, connections, _health_reporter(choice, settings))


def _introduce(entry: InventoryDevice, settings: Settings, tell: Callable[[str], None]) -> None:
    """Connect once while the user can still be asked to tap Allow; the run reports any other trouble."""
    with contextlib.suppress(DeviceError):
        link = open_link(entry.name, entry.place.address, connection_settings(settings), tell=tell)
        with contextlib.closing(link):
            link.connect()


def _ask_passwords(entries: Sequence[InventoryDevice]) -> tuple[tuple[str, str], ...]:
    """Return the slot name and password of each device whose password is asked for."""
    secrets: list[tuple[str, str]] = []
    for entry in entries:
        if isinstance(entry.place.address, SshAddress) and entry.place.address.password_source is PasswordSource.PROMPT:
            try:
                password = ask_on_terminal(f"Password of {entry.name} ({entry.place.address.describe()}): ")
            except DeviceError as error:
                raise UsageError(
                    f"{entry.name} needs a password, and {error.message}.", next_step=error.next_step
                ) from error
            secrets += [(name, password) for name, _ in entry.places()]
    return tuple(secrets)


def busy_slots(entries: Sequence[InventoryDevice], settings: Settings) -> dict[str, str]:
    """Ask all devices at once; return a reason for each slot that cannot be used, by its name."""
    connections = connection_settings(settings)
    reasons = {}
    for state in device_states(entries, settings):
        for name, place in state.device.places():
            kept = read_token(connections.token_folder, place)
            if reason := _why_busy(state, place.slot, kept, connections.lease_owner):
                reasons[name] = reason
    return reasons


def _why_busy(state: DeviceState, slot: int, kept: LeaseToken | None, owner: str) -> str:
    if state.health is not None and state.health.is_paused(time.time()):
        return f"unhealthy: {state.health.message}"
    if state.trouble:
        return state.trouble
    leases = [lease for lease in state.leases if lease.slot == slot]
    # This user's runs may use a lease that this user has taken by hand.
    others = [lease.owner for lease in leases if not is_taken_by_hand(lease, kept, owner)]
    return f"leased by {others[0]}" if others else ""


def _health_reporter(choice: DeviceChoice, settings: Settings) -> Callable[[str, DeviceTrouble | None], None]:
    addresses = {device.name: device.remote.address for device in choice.devices if device.remote is not None}
    folder = health_folder(settings)

    def report(name: str, trouble: DeviceTrouble | None) -> None:
        # A run does not fail because its health record cannot be written.
        with contextlib.suppress(SdkError):
            if trouble is None:
                clear_health(folder, addresses[name])
            else:
                record_unhealthy(folder, addresses[name], str(trouble), time.time(), trouble.kind)

    return report
