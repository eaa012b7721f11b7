"""The NVIDIA cards of chosen devices, which are asked before anything is built."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from halide_autotune.devices.device import Device
from halide_autotune.devices.device_trouble import DeviceTrouble
from halide_autotune.devices.health.card_state import CardState, build_card_probe, find_card
from halide_autotune.devices.inventory.inventory import InventoryDevice
from halide_autotune.devices.remote.open import device_transport
from halide_autotune.devices.remote.transport import AgentTransport
from halide_autotune.devices.remote_place import ConnectionSettings
from halide_autotune.sdk.inventory.connections import connection_settings
from halide_autotune.sdk.select.device_choice import DeviceChoice
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import DeviceError, SdkError, UsageError
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.process.scratch_folder import scratch_folder
from halide_autotune.targets.profile.cuda_card import compiled_capability
from halide_autotune.targets.profile.halide_target import parse_halide_target
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.profile.profile import TargetProfile
from halide_autotune.targets.toolchain.c_toolchain import open_toolchain


def fit_card(
    choice: DeviceChoice, parallelism: int | None, connections: ConnectionSettings | None, settings: Settings
) -> DeviceChoice:
    """Return the choice with the facts of its devices' card; unchanged for a profile without a card.

    At least one device must answer. The run tries the others again.

    Args:
        parallelism: as the user gave it; None takes the card's multiprocessors.

    Raises:
        DeviceError: a device has no card, or one too old for the profile's code; or none can be reached.
        UsageError: the devices have different cards.
        ToolchainError: the program that asks cannot be built.
    """
    if choice.profile.machine.gpu is None:
        return choice
    found: dict[str, CardState] = {}
    trouble: DeviceTrouble | None = None
    for device in choice.devices:
        try:
            found[device.name] = card_of(device, choice.profile, connections, settings)
        except DeviceTrouble as error:
            trouble = trouble or error
    if not found:
        assert trouble is not None, "a device either answers or is in trouble"
        raise trouble
    names = {state.card.name for state in found.values()}
    if len(names) > 1:
        raise UsageError(
            f"The devices have different cards ({', '.join(sorted(names))}), whose times do not compare.",
            next_step="Choose devices with the same card.",
        )
    card = next(iter(found.values())).card
    machine = replace(choice.profile.machine, gpu=card, parallelism=card.multiprocessors)
    return replace(
        choice,
        profile=replace(choice.profile, machine=machine),
        parallelism=parallelism or card.multiprocessors,
        note=_note(choice.note, found),
    )


def card_of(
    device: Device, profile: TargetProfile, connections: ConnectionSettings | None, settings: Settings
) -> CardState:
    """Return the card of a device.

    Raises:
        DeviceError: it has none, one too old for the profile's code, or cannot be reached.
        ToolchainError: the program that asks cannot be built.
    """
    cache = ContentCache(settings.cache_folder)
    program = build_card_probe(open_toolchain(profile, settings.cache_folder, None), cache)
    with scratch_folder("card") as folder:
        transport = device_transport(device, profile, folder, settings.environment, frozenset(), connections, cache)
        with contextlib.closing(transport):
            if isinstance(transport, AgentTransport):
                transport.open()
            state = find_card(transport, program, "This machine" if device.remote is None else device.name)
    _check_new_enough(device.name, state, profile)
    return state


def describe_card(entry: InventoryDevice, settings: Settings) -> str:
    """Return the card of a device of the inventory, or why it is unknown; empty if its profile has none."""
    try:
        profile = load_profile(entry.profile_name, settings.profile_folder)
        if profile.machine.gpu is None:
            return ""
        state = card_of(entry.devices(1)[0], profile, connection_settings(settings), settings)
    except SdkError as error:
        return error.message
    return "; ".join(text for text in (state.describe(), state.use_by_others) if text)


def _check_new_enough(name: str, state: CardState, profile: TargetProfile) -> None:
    wanted = compiled_capability(parse_halide_target(profile.halide_target))
    if state.card.capability_tenths < wanted:
        raise DeviceError(
            f"{state.card.name} on {name} has compute capability {state.card.compute_capability}, and profile "
            f"{profile.name} compiles for {wanted / 10:.1f}.",
            next_step="Choose a profile for older cards; `sdk targets` lists them.",
        )


def _note(note: str, found: dict[str, CardState]) -> str:
    uses = [f"{state.card.name} on {name} is {use}" for name, state in found.items() if (use := state.use_by_others)]
    busy = f"{'; '.join(uses)}, so times may be too long." if uses else ""
    cards = "; ".join(dict.fromkeys(state.describe() for state in found.values())) + "."
    return " ".join(text for text in (note, f"The card is {cards}", busy) if text)
