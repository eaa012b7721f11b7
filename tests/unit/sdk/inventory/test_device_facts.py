"""What a probe says about a device, for boards and phones that are not here."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.devices.health.probe import CacheProbe, CoreSense, DeviceProbe, Temperature
from halide_autotune.devices.inventory.fields import device_fields, read_device
from halide_autotune.devices.inventory.inventory import DeviceMachine, InventoryDevice
from halide_autotune.devices.remote_place import RemotePlace, SshAddress
from halide_autotune.sdk.inventory.device_facts import (
    check_cores,
    check_profile,
    cores_text,
    facts_of,
    fast_cores,
    guess_profile,
    machine_of,
)
from halide_autotune.targets.errors import DeviceError, UsageError


def core(number: int, max_hz: float | None = 2.4e9, capacity: float | None = None) -> CoreSense:
    return CoreSense(number, "schedutil", max_hz, capacity)


PI5 = DeviceProbe(
    kernel="6.6.31",
    machine="aarch64",
    os="Debian GNU/Linux 12",
    android=False,
    emulated=False,
    cpu_model="Raspberry\tPi 5\x1b[31m",
    memory_bytes=8.0 * 2**30,
    cores=tuple(core(number) for number in range(4)),
    caches=(
        *(CacheProbe(1, "Data", 65536, (number,)) for number in range(4)),
        *(CacheProbe(1, "Instruction", 2**20, (number,)) for number in range(4)),
        *(CacheProbe(2, "Unified", 524288, (number,)) for number in range(4)),
        CacheProbe(3, "Unified", 2**21, (0, 1, 2, 3)),
    ),
    temperature_zones=(Temperature(0, "cpu-thermal", 45.0), Temperature(1, "cpu-thermal", 44.0)),
    boot="b",
)
# A little, a middle and a big cluster, each with caches of its own.
PHONE = replace(
    PI5,
    android=True,
    cores=tuple(core(number, 1.8e9 if number < 4 else 2.8e9, 250 if number < 4 else 1024) for number in range(8)),
    caches=(
        CacheProbe(1, "Data", 32768, (0,)),
        CacheProbe(1, "Data", 65536, (4,)),
        CacheProbe(2, "Unified", 131072, (0, 1, 2, 3)),
        CacheProbe(2, "Unified", 524288, (4,)),
    ),
)
BOARD = InventoryDevice("pi", "arm64", RemotePlace(SshAddress("pi")))


def test_profiles_are_guessed() -> None:
    assert guess_profile(PI5) == "arm64"
    assert guess_profile(PHONE) == "arm64-android"
    assert guess_profile(replace(PI5, machine="x86_64")) == "x86-64"
    for strange in (replace(PI5, machine="mips"), replace(PHONE, machine="x86_64")):
        with pytest.raises(DeviceError, match="No target profile is known for .*--target"):
            guess_profile(strange)
    with pytest.raises(DeviceError, match="under Android"):
        guess_profile(replace(PHONE, machine="mips"))


def test_fast_cores() -> None:
    assert fast_cores(PI5) == ()
    assert fast_cores(PHONE) == (4, 5, 6, 7)
    without_capacity = replace(PHONE, cores=tuple(replace(one, capacity=None) for one in PHONE.cores))
    assert fast_cores(without_capacity) == (4, 5, 6, 7)
    nothing_known = replace(PHONE, cores=tuple(core(number, None) for number in range(8)))
    assert fast_cores(nothing_known) == ()
    favoured = replace(PI5, cores=tuple(core(number, 5.0e9 if number == 2 else 4.8e9) for number in range(4)))
    assert fast_cores(favoured) == ()


def test_machine_parameters() -> None:
    assert machine_of(PI5, ()) == DeviceMachine(4, 65536, 524288, 2**21)
    assert machine_of(PI5, (2, 3)).parallelism == 2
    assert machine_of(PHONE, ()) == DeviceMachine(8, 65536, 524288, 524288)
    assert machine_of(PHONE, (0, 1)) == DeviceMachine(2, 32768, 131072, 131072)
    assert machine_of(replace(PI5, cores=(), caches=()), ()) == DeviceMachine()
    no_second_level = replace(PI5, caches=PI5.caches[:4])
    assert machine_of(no_second_level, ()) == DeviceMachine(4, 65536, None, None)


def test_facts_fit_into_the_inventory() -> None:
    facts = dict(facts_of(PI5, "2026-01-01T00:00:00+00:00"))
    assert facts["cpu"] == "Raspberry Pi 5 [31m"
    assert facts["memory_bytes"] == 8 * 2**30
    assert facts["temperature_zones"] == ("cpu-thermal",)
    assert facts["governors"] == ("schedutil",)
    assert "fast_cores" not in facts
    assert dict(facts_of(PHONE, "now"))["fast_cores"] == (4, 5, 6, 7)


texts = st.none() | st.text(max_size=300)


@given(texts, texts, texts, st.none() | st.floats(0, 2**60))
def test_whatever_a_device_says_can_be_written(
    cpu: str | None, os: str | None, governor: str | None, memory_bytes: float | None
) -> None:
    cores = (replace(core(0), governor=governor),)
    probe = replace(PI5, cpu_model=cpu, os=os, memory_bytes=memory_bytes, cores=cores, kernel=cpu or "")
    device = replace(BOARD, probed=facts_of(probe, "now"), machine=machine_of(probe, ()))
    assert read_device("pi", device_fields(device), "x", None) == device


def test_a_profile_of_another_machine() -> None:
    check_profile("arm64", "arm-64-linux", PI5)
    check_profile("mine", "hexagon-32-noos", PI5)
    check_profile("x86-64", "x86-64-linux-avx2", replace(PI5, machine="loongarch64"))
    with pytest.raises(UsageError, match=r"profile x86-64 \(x86-64\) does not run on .* aarch64"):
        check_profile("x86-64", "x86-64-linux-avx2", PI5)


def board_with(cores: tuple[int, ...]) -> InventoryDevice:
    return replace(BOARD, place=replace(BOARD.place, cores=cores))


def test_cores_that_are_not_there() -> None:
    check_cores(board_with((0, 3)), PI5)
    check_cores(board_with((9,)), replace(PI5, cores=()))
    with pytest.raises(UsageError, match="has no core 4; it has 0-3"):
        check_cores(board_with((3, 4)), PI5)


@given(st.sets(st.integers(0, 200), min_size=1))
def test_lists_of_cores_are_read_back(cores: set[int]) -> None:
    table = device_fields(BOARD) | {"cores": cores_text(sorted(cores))}
    assert read_device("pi", table, "devices.toml", None).place.cores == tuple(sorted(cores))
