"""Asks several devices for their state at once, within a time limit."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from halide_autotune.devices.device_trouble import DeviceTrouble
from halide_autotune.devices.health.health import HealthRecord, read_health
from halide_autotune.devices.inventory.inventory import InventoryDevice
from halide_autotune.devices.lease.lease import SlotLease
from halide_autotune.sdk.inventory.connections import health_folder
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import SdkError

# A device that has not answered by then counts as unreachable.
ANSWER_LIMIT_S = 6.0


class DeviceStatus(Enum):
    """What a device can be used for now."""

    FREE = "free"
    LEASED = "leased"
    UNHEALTHY = "unhealthy"
    UNREACHABLE = "unreachable"
    NOT_ASKED = "not asked"


@dataclass(frozen=True)
class DeviceState:
    """A device, and what is known about it.

    Attributes:
        trouble: why it cannot be reached; empty if it can be, or was not asked.
        health: why it is unhealthy; None if it is not.
    """

    device: InventoryDevice
    status: DeviceStatus
    leases: tuple[SlotLease, ...] = ()
    trouble: str = ""
    health: HealthRecord | None = None


def health_of(settings: Settings) -> Callable[[InventoryDevice], HealthRecord | None]:
    """Return a function that reads why a device is unhealthy."""
    folder = health_folder(settings)
    return lambda device: read_health(folder, device.place.address)


Tell = Callable[[str], None]
Ask = Callable[[InventoryDevice, Tell], Sequence[SlotLease]]


def ask_devices(
    devices: Sequence[InventoryDevice],
    ask: Ask | None,
    health_of: Callable[[InventoryDevice], HealthRecord | None],
) -> list[DeviceState]:
    """Ask all devices at the same time; the answers are in their order.

    Args:
        ask: returns the leases of one device, or raises SdkError; reports what it waits for; called in threads. None
            asks no device.

    Raises:
        Exception: any other exception of `ask`, which is a bug.
    """
    if ask is None:
        return [_state(device, health_of(device), None) for device in devices]
    answers: queue.Queue[tuple[int, Sequence[SlotLease] | Exception]] = queue.Queue()
    waits_for = [""] * len(devices)
    for index, device in enumerate(devices):
        # A thread that hangs in a dead connection must not keep the program from ending.
        threading.Thread(target=_answer, args=(index, device, ask, answers, waits_for), daemon=True).start()
    found: dict[int, Sequence[SlotLease] | Exception] = {}
    deadline_s = time.monotonic() + ANSWER_LIMIT_S
    while len(found) < len(devices):
        try:
            # Answers that are there count even after the deadline: this process may have been stopped meanwhile.
            index, answer = answers.get(timeout=max(0.0, deadline_s - time.monotonic()))
        except queue.Empty:
            break
        found[index] = answer
    for index, reason in enumerate(waits_for):
        found.setdefault(index, SdkError(f"It did not answer within {ANSWER_LIMIT_S:g} s. {reason}".rstrip()))
    return [_state(device, health_of(device), found[index]) for index, device in enumerate(devices)]


def _answer(
    index: int,
    device: InventoryDevice,
    ask: Ask,
    answers: queue.Queue[tuple[int, Sequence[SlotLease] | Exception]],
    waits_for: list[str],
) -> None:
    def tell(message: str) -> None:
        waits_for[index] = message

    try:
        answers.put((index, ask(device, tell)))
    except Exception as error:
        answers.put((index, error))


def _state(
    device: InventoryDevice, health: HealthRecord | None, answer: Sequence[SlotLease] | Exception | None
) -> DeviceState:
    if isinstance(answer, Exception):
        if not isinstance(answer, SdkError):
            raise answer
        step = answer.next_step if isinstance(answer, DeviceTrouble) and answer.kind.needs_a_person else ""
        trouble = f"{answer.message.removeprefix(f'{device.name}: ')} {step}".rstrip()
        return DeviceState(device, DeviceStatus.UNREACHABLE, trouble=trouble, health=health)
    leases = tuple(answer or ())
    if health is not None:
        status = DeviceStatus.UNHEALTHY
    elif answer is None:
        status = DeviceStatus.NOT_ASKED
    else:
        status = DeviceStatus.LEASED if leases else DeviceStatus.FREE
    return DeviceState(device, status, leases, health=health)
