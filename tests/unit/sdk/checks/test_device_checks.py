"""The verdicts of `sdk devices check`, on devices that are hot, throttled, full, leased or out of time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType

import pytest

from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.health.probe import CoreSense, DeviceSense, Temperature
from halide_autotune.devices.inventory.inventory import InventoryDevice
from halide_autotune.devices.lease.lease import SlotLease
from halide_autotune.devices.remote_place import RemotePlace, SshAddress
from halide_autotune.sdk.checks import device_checks
from halide_autotune.sdk.checks.check import Check
from halide_autotune.sdk.checks.device_checks import check_device
from halide_autotune.sdk.inventory.device_access import ReachedDevice

PI = InventoryDevice("pi", "arm64", RemotePlace(SshAddress("pi")))
GOOD = DeviceSense(
    boot="b",
    uptime_s=0.0,
    load_1m=0.3,
    free_bytes=2.0**33,
    cores=tuple(CoreSense(number, "performance", 2.4e9, 2.4e9) for number in range(4)),
    temperatures=(Temperature(0, "cpu", 45.0), Temperature(1, "broken", -274.0)),
)


@pytest.fixture(autouse=True)
def short_clock_span(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_checks, "_CLOCK_SPAN_S", 0.1)


class StagedDevice(ReachedDevice):
    """Answers as a connected device in a certain state would."""

    def __init__(
        self,
        sense: DeviceSense = GOOD,
        canaries_s: Sequence[float] = (1.5e-3,),
        leases: Sequence[SlotLease] = (),
        clock_rate: float = 1.0,
        later: DeviceSense | None = None,
        lost: bool = False,
    ) -> None:
        self._senses = [sense, later or sense]
        self._canaries_s = list(canaries_s)
        self._leases = tuple(leases)
        self._clock_rate = clock_rate
        self._lost = lost
        self.is_closed = False

    def __enter__(self) -> StagedDevice:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.is_closed = True

    def sense(self) -> DeviceSense:
        sense = self._senses.pop(0) if len(self._senses) > 1 else self._senses[0]
        return replace(sense, uptime_s=self._clock_rate * time.monotonic())

    def canary_s(self) -> float:
        if self._lost:
            raise DeviceTrouble(TroubleKind.LOST, "The connection to pi was lost.", next_step="Try again.")
        time_s = self._canaries_s.pop(0)
        self._canaries_s.append(time_s)
        return time_s

    def leases(self) -> tuple[SlotLease, ...]:
        return self._leases

    def holds(self, lease: SlotLease) -> bool:
        return lease.owner == "me"


def checks_of(staged: StagedDevice, device: InventoryDevice = PI) -> dict[str, Check]:
    checks = check_device(device, lambda: staged, lambda step: None)
    assert staged.is_closed
    assert all(check.passed == (check.fix == "") for check in checks)
    return {check.name: check for check in checks}


def failed(staged: StagedDevice, device: InventoryDevice = PI) -> dict[str, str]:
    return {name: check.found for name, check in checks_of(staged, device).items() if not check.passed}


def test_a_device_in_good_order() -> None:
    checks = checks_of(StagedDevice())
    assert list(checks) == "connection,agent,storage,lease,load,governor,steady speed,temperature,clock".split(",")
    assert all(check.passed for check in checks.values())
    assert checks["temperature"].found == "45 °C (cpu)"
    assert checks["steady speed"].found == "1.50 ms, 0.0 % spread"


@pytest.mark.parametrize(
    ("staged", "device", "name", "found"),
    [
        (StagedDevice(replace(GOOD, free_bytes=2.0**20)), PI, "storage", "1 MiB free"),
        (StagedDevice(replace(GOOD, load_1m=3.0)), PI, "load", "3.0 on 4 cores in the last minute"),
        (StagedDevice(leases=[SlotLease(0, "ann", 60, 9)]), PI, "lease", "held by ann for 1 min"),
        (StagedDevice(replace(GOOD, temperatures=(Temperature(0, None, 91.0),))), PI, "temperature", "91 °C (zone 0)"),
        (StagedDevice(canaries_s=[1e-3, 1.2e-3]), PI, "steady speed", "1.00 ms, 20.0 % spread"),
        (StagedDevice(clock_rate=100.0), PI, "clock", None),
        (StagedDevice(clock_rate=0.01), PI, "clock", None),
        (StagedDevice(later=replace(GOOD, boot="c")), PI, "clock", "the device restarted during the check"),
        (StagedDevice(), replace(PI, place=replace(PI.place, cores=(3, 4))), "cores", "there is no core 4"),
    ],
)
def test_each_fault_is_found_alone(staged: StagedDevice, device: InventoryDevice, name: str, found: str | None) -> None:
    faults = failed(staged, device)
    assert list(faults) == [name]
    assert found is None or faults[name] == found


def test_the_governor_matters_on_the_cores_that_are_used() -> None:
    powersave = CoreSense(0, "powersave", 6e8, 2.4e9)
    mixed = replace(GOOD, cores=(powersave, *GOOD.cores[1:]))
    by_hand = replace(PI, place=replace(PI.place, performance_mode=False))
    assert failed(StagedDevice(mixed), by_hand) == {"governor": "performance, powersave"}
    assert failed(StagedDevice(mixed), replace(PI, place=replace(by_hand.place, cores=(1, 2)))) == {}
    asked = checks_of(StagedDevice(mixed))["governor"]
    assert asked.passed
    assert "powersave" in asked.found and "a run requests performance" in asked.found


def test_a_lease_of_ones_own_is_no_fault() -> None:
    assert checks_of(StagedDevice(leases=[SlotLease(0, "me", 1, 9)]))["lease"].found == "held by you"


def test_an_emulated_device_has_no_steady_speed() -> None:
    checks = checks_of(StagedDevice(canaries_s=[1.0, 9.0]), replace(PI, emulated=True))
    assert not {"steady speed", "governor"} & set(checks)


def test_what_a_device_does_not_tell_is_no_fault() -> None:
    silent = replace(GOOD, load_1m=None, temperatures=(), cores=(CoreSense(0, None, None, None),))
    assert failed(StagedDevice(silent)) == {}


def test_without_a_connection_there_is_one_check() -> None:
    def refuse() -> StagedDevice:
        raise DeviceTrouble(TroubleKind.UNREACHABLE, "No route to pi.", next_step="Look at the cable.")

    checks = check_device(PI, refuse, lambda step: None)
    assert checks == [Check("connection", False, "No route to pi.", "Look at the cable.")]


def test_a_connection_lost_on_the_way_keeps_what_was_found() -> None:
    checks = checks_of(StagedDevice(lost=True))
    assert list(checks)[-1] == "answer"
    assert checks["answer"].found == "The connection to pi was lost."
    assert checks["storage"].passed
