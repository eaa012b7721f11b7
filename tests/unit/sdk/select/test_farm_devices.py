"""When a run is for a farm, and for which."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.farm.address import FarmAddress
from halide_autotune.autotune_loop.specification.options import DeviceOptions, FarmOptions, RunOptions
from halide_autotune.sdk.options.autotune_options import run_options
from halide_autotune.sdk.project.file import Project, find_project
from halide_autotune.sdk.select.farm_devices import find_farm_devices, wanted_farm
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import UsageError


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A folder whose sdk.toml names a farm."""
    (tmp_path / "sdk.toml").write_text('[farm]\nscheduler = "tls://project.example"\n')
    monkeypatch.chdir(tmp_path)
    return find_project(tmp_path)


def test_the_nearest_word_counts(project: Project, settings: Settings) -> None:
    def farm(given: str | None, settings: Settings) -> str | None:
        found = wanted_farm(FarmOptions(given), DeviceOptions(), settings)
        return None if found is None else found.address

    assert farm(None, settings) == "tls://project.example:8786"
    in_the_environment = replace(settings, scheduler="tls://environment.example:1")
    assert farm(None, in_the_environment) == "tls://environment.example:1"
    assert farm("tls://line.example:2", in_the_environment) == "tls://line.example:2"
    assert farm("none", in_the_environment) is None


def test_devices_of_this_machine_are_not_the_farms(project: Project, settings: Settings) -> None:
    assert wanted_farm(FarmOptions(), DeviceOptions(device=("local",)), settings) is None
    assert wanted_farm(FarmOptions(), DeviceOptions(inventory=Path("devices.toml")), settings) is None
    with pytest.raises(UsageError, match="qemu names devices that are not the farm's"):
        wanted_farm(FarmOptions("tls://lab"), DeviceOptions(device=("qemu",)), settings)
    with pytest.raises(UsageError, match="--inventory names devices that are not the farm's"):
        wanted_farm(FarmOptions("tls://lab"), DeviceOptions(inventory=Path("devices.toml")), settings)


def test_without_a_word_a_run_stays_here(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert wanted_farm(FarmOptions(), DeviceOptions(device=("pi5",)), settings) is None


def test_a_farm_has_no_dsps(settings: Settings) -> None:
    address = FarmAddress("tcp://127.0.0.1:1")  # nobody is asked
    with pytest.raises(UsageError, match="A farm runs programs on processors, and hexagon-v66 is for a DSP") as caught:
        find_farm_devices(address, RunOptions.of(target="hexagon-v66"), "blur", settings)
    assert "--scheduler none" in caught.value.next_step


def test_a_priority_has_three_levels(project: Project) -> None:
    with pytest.raises(UsageError, match="--priority must be one of low, normal, high, not 'urgent'"):
        run_options({"priority": "urgent"}, project)
