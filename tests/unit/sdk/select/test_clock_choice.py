"""Which clock an emulated device gets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from halide_autotune.devices.device import Clock, Device
from halide_autotune.sdk.select import clock_choice
from halide_autotune.sdk.select.clock_choice import fit_clock
from halide_autotune.sdk.select.device_choice import DeviceChoice
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import EmulatorError, SdkError, ToolchainError, UsageError
from halide_autotune.targets.profile.host_probe import probe_host
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.profile.profile import TargetProfile

BEFORE = "Timing on the emulator."


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> TargetProfile:
    """One whose emulator runs this machine's own programs, so that no system root is needed."""
    return load_profile("x86-64")


def choice_of(profile: TargetProfile, threads: int = 2, kind: str = "qemu") -> DeviceChoice:
    device = Device(kind, kind, profile.name, Clock.EMULATED, threads, uses_host_cores=True)
    return DeviceChoice((device,), profile, threads, note=BEFORE)


@pytest.mark.toolchain
def test_simulated_where_it_can_be_had(
    profile: TargetProfile, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock_choice, "usable_memory_bytes", lambda: 2**50)
    for wanted in (None, "simulated"):
        choice = fit_clock(choice_of(profile), wanted, settings)
        (device,) = choice.devices
        assert device.clock is Clock.SIMULATED and device.is_emulated and choice.note == BEFORE
        assert device.measuring_cores == 0, "building moves no simulated time"
        assert device.at_once == probe_host().logical_cores, "nor does another schedule"
        assert device.clock_plugin is not None and device.clock_plugin.read_bytes()[:4] == b"\x7fELF"


def test_the_emulators_own_where_it_is_asked_for(profile: TargetProfile, settings: Settings) -> None:
    choice = fit_clock(choice_of(profile), "emulated", settings)
    assert choice == choice_of(profile)
    assert (choice.devices[0].measuring_cores, choice.devices[0].at_once) == (2, 1)


@pytest.mark.toolchain
def test_no_more_programs_at_once_than_there_is_memory_for(
    profile: TargetProfile, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock_choice, "probe_host", lambda: replace(probe_host(), logical_cores=64))
    monkeypatch.setattr(clock_choice, "usable_memory_bytes", lambda: 7 * 2**30)
    assert fit_clock(choice_of(profile), None, settings).devices[0].at_once == 3


def test_without_a_compiler_the_emulators_own_and_a_message(
    profile: TargetProfile, settings: Settings, tmp_path: Path
) -> None:
    bare = replace(settings, cache_folder=tmp_path, environment={"PATH": str(tmp_path)})
    choice = fit_clock(choice_of(profile), None, bare)
    assert choice.devices == choice_of(profile).devices
    assert choice.note.startswith(f"{BEFORE} Times are the emulator's own, which rank schedules badly: ")
    assert "none of gcc, cc, clang is installed" in choice.note
    with pytest.raises(ToolchainError, match="needs a C compiler"):
        fit_clock(choice_of(profile), "simulated", bare)


@pytest.mark.toolchain
def test_more_cores_than_can_be_simulated(profile: TargetProfile, settings: Settings) -> None:
    assert "300 threads; expected 1 to 256" in fit_clock(choice_of(profile, threads=300), None, settings).note


def test_an_emulator_that_the_clock_does_not_know(profile: TargetProfile, settings: Settings, tmp_path: Path) -> None:
    other = tmp_path / "my-emulator"
    other.write_text("#!/bin/sh\necho version 7.2\n")
    other.chmod(0o755)
    assert profile.emulator is not None
    strange = replace(profile, emulator=replace(profile.emulator, command=str(other)))
    assert fit_clock(choice_of(strange), None, settings).devices[0].clock is Clock.EMULATED
    with pytest.raises(EmulatorError, match="does not support .*my-emulator"):
        fit_clock(choice_of(strange), "simulated", settings)


@pytest.mark.parametrize(("kind", "wanted"), [("local", "simulated"), ("ssh", "emulated"), ("qemu", "sundial")])
def test_clocks_that_the_device_does_not_have(
    kind: str, wanted: str, profile: TargetProfile, settings: Settings
) -> None:
    with pytest.raises(UsageError) as caught:
        fit_clock(choice_of(profile, kind=kind), wanted, settings)
    message = caught.value.message
    assert ("sundial" in message) if wanted == "sundial" else ("--clock" in message and kind in message)


def test_other_devices_keep_theirs(profile: TargetProfile, settings: Settings) -> None:
    assert fit_clock(choice_of(profile, kind="local"), None, settings) == choice_of(profile, kind="local")


@pytest.mark.parametrize("name", ["x86-64-avx512", "cuda-sm75"])
def test_code_that_no_emulator_runs(name: str, settings: Settings) -> None:
    with pytest.raises(SdkError, match=r"QEMU cannot run code of profile .*: .*(avx512|cuda)"):
        fit_clock(choice_of(load_profile(name)), "simulated", settings)
