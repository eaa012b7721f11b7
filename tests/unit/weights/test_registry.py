"""Weights by name: found, hidden, damaged, nearest."""

from __future__ import annotations

from pathlib import Path

import pytest

from halide_autotune.targets.errors import WeightsError
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.weights.arithmetic import perturb_weights
from halide_autotune.weights.baseline import baseline_weights
from halide_autotune.weights.lineage import Lineage, Training
from halide_autotune.weights.registry import (
    RegisteredWeights,
    WeightsRegistry,
    entry_name,
    nearest_weights,
    nest_prior_beside,
)
from halide_autotune.weights.weights_file import Weights, weights_sha256


@pytest.fixture
def weights(halide: HalideInstall) -> Weights:
    return baseline_weights(halide.plugin_path("Adams2019"))


def test_a_users_entry_hides_a_shipped_one(weights: Weights, tmp_path: Path) -> None:
    shipped = WeightsRegistry(tmp_path / "shipped")
    shipped.add("x86-64", weights, Lineage(profile="x86-64"))
    registry = WeightsRegistry(tmp_path / "mine", tmp_path / "shipped")
    assert registry.find("x86-64").is_shipped
    own = perturb_weights(weights, 0.1, 1)
    registry.add("x86-64", own, Lineage(profile="x86-64", training=Training(samples=5)))
    found = registry.find("x86-64")
    assert (found.sha256, found.lineage.training.samples, found.is_shipped) == (weights_sha256(own), 5, False)
    sound, damaged = registry.entries()
    assert [entry.name for entry in sound] == ["x86-64"] and damaged == []
    beneath = registry.shipped("x86-64")
    assert beneath is not None and (beneath.sha256, beneath.is_shipped) == (weights_sha256(weights), True)
    assert registry.shipped("arm64") is None


def test_a_damaged_entry_is_told_and_hides_nothing_else(weights: Weights, tmp_path: Path) -> None:
    registry = WeightsRegistry(tmp_path, tmp_path / "none")
    registry.add("arm64@pi", weights, Lineage(profile="arm64", device="pi"))
    (tmp_path / "x86-64.weights").write_bytes(b"not weights")
    sound, damaged = registry.entries()
    assert [entry.name for entry in sound] == ["arm64@pi"]
    assert [entry.name for entry in damaged] == ["x86-64"] and "x86-64.weights" in damaged[0].message
    with pytest.raises(WeightsError, match="damaged"):
        registry.find("x86-64")


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a@b@c", ".hidden", "x" * 200, "a b", "a\n"])
def test_no_name_leaves_the_folder(name: str, weights: Weights, tmp_path: Path) -> None:
    registry = WeightsRegistry(tmp_path / "mine", tmp_path / "none")
    with pytest.raises(WeightsError, match="cannot name weights"):
        registry.add(name, weights, Lineage())
    with pytest.raises(WeightsError, match="cannot name weights"):
        registry.find(name)
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_there_is_told_with_what_is(weights: Weights, tmp_path: Path) -> None:
    registry = WeightsRegistry(tmp_path, tmp_path / "none")
    registry.add("arm64", weights, Lineage())
    with pytest.raises(WeightsError, match=r"no weights named 'arm46'.*There are: arm64"):
        registry.find("arm46")


def entry(
    profile: str, device: str = "", clock: str = "wall", samples: int = 10, *, is_shipped: bool = False
) -> RegisteredWeights:
    lineage = Lineage(
        profile=profile, device=device, clock=clock, network="Adams2019", training=Training(samples=samples)
    )
    return RegisteredWeights(f"{entry_name(profile, device)}-{clock}-{samples}", Path("x"), "", lineage, is_shipped)


def test_the_nearest_are_of_the_device_then_of_its_profile_then_of_another_device() -> None:
    entries = [
        entry("arm64", "pi5"),
        entry("arm64", samples=4000),
        entry("arm64", "pi4"),
        entry("arm64", "pi4", "emulated", 99),
        entry("x86-64"),
    ]

    def found(profile: str, device: str, network: str = "Adams2019") -> str | None:
        near = nearest_weights(entries, [profile], device, network, "wall")
        return None if near is None else near.name

    assert found("arm64", "pi4") == "arm64@pi4-wall-10"
    assert found("arm64", "odroid") == "arm64-wall-4000"
    del entries[1]
    assert found("arm64", "odroid") == "arm64@pi5-wall-10"
    assert nearest_weights(entries, ["host", "x86-64"], "local", "Adams2019", "wall") is entries[-1]
    emulated = nearest_weights(entries, ["arm64"], "", "Adams2019", "emulated")
    assert emulated is not None and emulated.lineage.clock == "emulated"
    assert found("arm64", "pi4", "Anderson2021") is None and found("riscv64", "") is None


def test_those_of_the_sdk_from_a_simulated_clock_stand_in_for_device_time_only() -> None:
    simulated = entry("arm64", clock="simulated", samples=2000, is_shipped=True)
    others = [entry("arm64", "qemu", "simulated"), entry("arm64", clock="emulated", is_shipped=True)]
    of_another = entry("arm64", "pi5")
    for clock, expected in (("wall", simulated), ("simulated", simulated), ("emulated", others[1])):
        assert nearest_weights([*others, simulated], ["arm64"], "pi4", "Adams2019", clock) is expected
    assert nearest_weights([simulated, of_another], ["arm64"], "pi4", "Adams2019", "wall") is of_another
    assert nearest_weights([others[0]], ["arm64"], "pi4", "Adams2019", "wall") is None, "a user's stay with their clock"


def test_what_loop_nests_say_comes_with_weights(weights: Weights, tmp_path: Path) -> None:
    registry = WeightsRegistry(tmp_path / "mine", tmp_path / "none")
    learnt = tmp_path / "learnt.npz"
    learnt.write_bytes(b"nests")
    registry.add("arm64", weights, Lineage(), learnt)
    registry.add("arm64@pi", weights, Lineage())
    beside = nest_prior_beside(tmp_path / "mine" / "arm64.weights")
    assert registry.nest_prior("arm64") == registry.nest_prior("arm64@pi") == beside and beside.read_bytes() == b"nests"
    registry.add("arm64", weights, Lineage(note="again"), beside)
    assert beside.read_bytes() == b"nests", "it replaces itself"
    assert registry.nest_prior("arm32") is None
    registry.add("arm64", weights, Lineage())
    assert registry.nest_prior("arm64") is None, "they would be those of other weights"
