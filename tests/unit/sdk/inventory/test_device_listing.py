"""Asking devices at once: order, limits, what each answer makes of a device."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import pytest

from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.health.health import HealthRecord
from halide_autotune.devices.inventory.inventory import InventoryDevice
from halide_autotune.devices.lease.lease import SlotLease
from halide_autotune.devices.remote_place import RemotePlace, SshAddress
from halide_autotune.sdk.inventory import device_listing
from halide_autotune.sdk.inventory.device_listing import DeviceStatus, ask_devices
from tests.process_state import await_condition

DEVICES = [
    InventoryDevice(name, "arm64", RemotePlace(SshAddress(name))) for name in ("free", "leased", "gone", "key", "sick")
]
LEASE = SlotLease(0, "ann@lab", 60.0, 30.0)
SICK = HealthRecord(TroubleKind.TIMEOUT, "It fell silent.", 3, 1.0, 2.0)


def health_of(device: InventoryDevice) -> HealthRecord | None:
    return SICK if device.name in ("sick", "gone") else None


def ask(device: InventoryDevice, tell: Callable[[str], None]) -> Sequence[SlotLease]:
    if device.name == "gone":
        raise DeviceTrouble(TroubleKind.UNREACHABLE, "No route.", next_step="Look at the cable.")
    if device.name == "key":
        raise DeviceTrouble(TroubleKind.REFUSED, "No key fits.", next_step="Add one.")
    return [LEASE] if device.name == "leased" else []


def test_states_in_the_order_of_the_file() -> None:
    states = ask_devices(DEVICES, ask, health_of)
    assert [state.device.name for state in states] == [device.name for device in DEVICES]
    assert [state.status for state in states] == [
        DeviceStatus.FREE,
        DeviceStatus.LEASED,
        DeviceStatus.UNREACHABLE,
        DeviceStatus.UNREACHABLE,
        DeviceStatus.UNHEALTHY,
    ]
    assert states[1].leases == (LEASE,)
    assert [state.trouble for state in states] == ["", "", "No route.", "No key fits. Add one.", ""]
    assert [state.health for state in states] == [None, None, SICK, None, SICK]


def test_offline_nobody_is_asked() -> None:
    states = ask_devices(DEVICES, None, health_of)
    assert {state.status for state in states} == {DeviceStatus.NOT_ASKED, DeviceStatus.UNHEALTHY}


def test_all_are_asked_at_once_and_none_is_waited_for_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is up when all but one have answered, and before any answer was looked at."""
    everyone = threading.Barrier(len(DEVICES))
    told, end = threading.Event(), threading.Event()
    threads_before = set(threading.enumerate())
    times_s: list[float] = []

    def monotonic() -> float:
        if times_s:
            assert told.wait(120)
            await_condition(lambda: len(set(threading.enumerate()) - threads_before) == 1)
        times_s.append(1e6 * len(times_s))
        return times_s[-1]

    monkeypatch.setattr(device_listing, "ANSWER_LIMIT_S", 1.0)
    monkeypatch.setattr(device_listing, "time", SimpleNamespace(monotonic=monotonic))

    def meet(device: InventoryDevice, tell: Callable[[str], None]) -> Sequence[SlotLease]:
        everyone.wait(120)
        if device.name == "key":
            tell("Tap Allow.")
            told.set()
            end.wait(120)
        return []

    states = ask_devices(DEVICES, meet, lambda device: None)
    end.set()
    late = [state for state in states if state.status is DeviceStatus.UNREACHABLE]
    assert [(state.device.name, state.trouble) for state in late] == [
        ("key", "It did not answer within 1 s. Tap Allow.")
    ]


def test_a_fault_of_ours_is_not_a_devices() -> None:
    def fail(device: InventoryDevice, tell: Callable[[str], None]) -> Sequence[SlotLease]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ask_devices(DEVICES, fail, health_of)
