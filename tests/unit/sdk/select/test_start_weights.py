"""Which weights a run starts from, and what is kept of those it has trained."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from halide_autotune.autotune_loop.specification.prepared_run import PreparedRun
from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.timing.measure_settings import KernelInputs
from halide_autotune.sdk.select.named_weights import open_registry
from halide_autotune.sdk.select.start_weights import choose_start_weights, keep_trained_weights
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import WeightsError
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.profile.profile import TargetProfile
from halide_autotune.weights.arithmetic import perturb_weights
from halide_autotune.weights.baseline import baseline_weights
from halide_autotune.weights.lineage import Lineage, Training
from halide_autotune.weights.weights_file import Weights, read_weights, weights_sha256, write_weights
from tests.recorded_run_folder import write_run_folder
from tests.run_specs import make_spec

DEVICES = (Device("pi4", "ssh", "arm64", Clock.WALL, 4, uses_host_cores=False),)


@pytest.fixture
def own(settings: Settings, tmp_path: Path) -> Settings:
    return replace(settings, config_folder=tmp_path / "config")


@pytest.fixture
def profile(own: Settings) -> TargetProfile:
    return load_profile("arm64", own.profile_folder)


@pytest.fixture
def halides(halide: HalideInstall) -> Weights:
    return baseline_weights(halide.plugin_path("Adams2019"))


def test_the_nearest_are_taken_and_said(own: Settings, profile: TargetProfile, halides: Weights) -> None:
    nests_alone = choose_start_weights(None, profile, DEVICES, own)
    assert nests_alone.path is None and nests_alone.message == "" and not nests_alone.is_transferred
    assert nests_alone.nest_prior is not None and nests_alone.nest_prior.name == "arm64.nests.npz"
    phone = load_profile("arm64-android", own.profile_folder)
    assert choose_start_weights(None, phone, DEVICES, own).nest_prior == nests_alone.nest_prior
    training = Training(samples=70, pairwise_accuracy=0.81)
    told = Lineage(profile="arm64", device="pi5", clock="wall", network="Adams2019", training=training)
    entry = open_registry(own).add("arm64@pi5", halides, told)
    start = choose_start_weights(None, profile, DEVICES, own)
    assert start.path == entry.path and start.is_transferred
    assert "arm64@pi5 (70 schedules, 81 % of held-out pairs in order)" in start.message
    # Times of an emulator say nothing about a board.
    emulated = (replace(DEVICES[0], clock=Clock.EMULATED),)
    assert choose_start_weights(None, profile, emulated, own).path is None


def test_damaged_ones_are_passed_over_aloud(own: Settings, profile: TargetProfile, halides: Weights) -> None:
    registry = open_registry(own)
    entry = registry.add("arm64@pi5", halides, Lineage(profile="arm64", device="pi5", network="Adams2019"))
    for name in ("arm64", "arm32"):
        (registry.folder / f"{name}.weights").write_bytes(b"short")
    start = choose_start_weights(None, profile, DEVICES, own)
    assert start.path == entry.path
    assert "arm64 are skipped" in start.message and "16 bytes of the header" in start.message
    assert "arm32" not in start.message


def test_what_the_user_names_is_taken_as_it_is(own: Settings, profile: TargetProfile, halides: Weights) -> None:
    entry = open_registry(own).add("arm64", halides, Lineage(profile="arm64", network="Adams2019"))
    named = choose_start_weights("arm64", profile, DEVICES, own)
    assert (named.path, named.is_transferred, named.message) == (entry.path, False, "")
    custom = replace(profile, start_weights="mine.weights")
    assert choose_start_weights(None, custom, DEVICES, own).profile.start_weights == "mine.weights"
    baseline = choose_start_weights("baseline", custom, DEVICES, own)
    assert (baseline.path, baseline.profile.start_weights) == (None, "baseline")
    with pytest.raises(WeightsError, match="no weights named 'arm46'"):
        choose_start_weights("arm46", profile, DEVICES, own)


def test_loop_nests_are_those_of_the_kind_of_processor_whatever_the_weights(
    own: Settings, profile: TargetProfile, halides: Weights, tmp_path: Path
) -> None:
    of_kind = choose_start_weights(None, profile, DEVICES, own).nest_prior
    mine = tmp_path / "mine.weights"
    write_weights(halides, mine)
    for wanted in ("baseline", str(mine)):
        assert choose_start_weights(wanted, profile, DEVICES, own).nest_prior == of_kind
    emulated = (replace(DEVICES[0], clock=Clock.EMULATED),)
    assert choose_start_weights(None, replace(profile, start_weights=str(mine)), emulated, own).nest_prior == of_kind
    beside = tmp_path / "mine.nests.npz"
    beside.write_bytes(b"nests")
    assert choose_start_weights(str(mine), profile, DEVICES, own).nest_prior == beside


def finished_run(folder: Path, samples: int, start: Weights, trained: Weights) -> Any:
    write_run_folder(folder, samples)
    write_weights(start, folder / "samples" / "start.weights")
    write_weights(trained, folder / "samples" / "updated.weights")
    return SimpleNamespace(
        weights=folder / "samples" / "updated.weights", run_folder=folder, totals=SimpleNamespace(samples_timed=samples)
    )


def test_only_what_halides_search_found_counts_as_learnt(
    own: Settings, profile: TargetProfile, halides: Weights, tmp_path: Path
) -> None:
    """Weights that 14 schedules have changed are no better than those before, however many others were timed."""
    request = PreparedRun(make_spec(profile=profile), tmp_path, DEVICES, KernelInputs(), lambda name, trouble: None)
    run = finished_run(tmp_path / "run", 70, halides, perturb_weights(halides, 0.1, 1))
    with sqlite3.connect(tmp_path / "run" / "tuning.db") as connection:
        connection.execute(
            "UPDATE candidates SET origin = 'evolution', lineage = ? WHERE sample > 6",
            [json.dumps({"parents": [], "moves": ["split"]})],
        )
    connection.close()
    assert keep_trained_weights(run, request, own) == ""


def test_what_a_run_has_learnt_is_kept_and_never_displaces_other_weights(
    own: Settings, profile: TargetProfile, halides: Weights, tmp_path: Path
) -> None:
    request = PreparedRun(make_spec(profile=profile), tmp_path, DEVICES, KernelInputs(), lambda name, trouble: None)
    first, second, stranger = (perturb_weights(halides, 0.1, seed) for seed in (1, 2, 3))
    registry = open_registry(own)
    assert keep_trained_weights(finished_run(tmp_path / "short", 10, halides, first), request, own) == ""
    assert keep_trained_weights(finished_run(tmp_path / "same", 70, halides, halides), request, own) == ""
    assert [name for name in registry.names() if not registry.find(name).is_shipped] == []

    assert "kept as arm64@pi4" in keep_trained_weights(finished_run(tmp_path / "a", 70, halides, first), request, own)
    assert "kept as arm64@pi4" in keep_trained_weights(finished_run(tmp_path / "b", 66, first, second), request, own)
    entry = registry.find("arm64@pi4")
    told = entry.lineage
    assert (told.training.samples, told.training.rounds, told.parent_sha256) == (136, 2, weights_sha256(first))
    assert (told.device, told.clock, told.training.pairwise_accuracy) == ("pi4", "wall", 0.75)

    message = keep_trained_weights(finished_run(tmp_path / "c", 70, halides, stranger), request, own)
    assert "are kept" in message and "sdk weights import" in message and "--device pi4 --replace" in message
    assert weights_sha256(read_weights(entry.path)) == weights_sha256(second)


def test_loop_nests_that_a_training_has_learnt_outlive_what_a_run_keeps(
    own: Settings, profile: TargetProfile, halides: Weights, tmp_path: Path
) -> None:
    """The entry is the one that the run started from: Halide's own weights, which come with loop nests alone."""
    request = PreparedRun(make_spec(profile=profile), tmp_path, DEVICES, KernelInputs(), lambda name, trouble: None)
    registry, learnt = open_registry(own), tmp_path / "learnt.npz"
    learnt.write_bytes(b"nests")
    registry.add("arm64@pi4", halides, Lineage(profile="arm64", device="pi4", network="Adams2019"), learnt)
    run = finished_run(tmp_path / "run", 70, halides, perturb_weights(halides, 0.1, 1))
    assert "kept as arm64@pi4" in keep_trained_weights(run, request, own)
    kept = registry.nest_prior("arm64@pi4")
    assert kept is not None and kept.name == "arm64@pi4.nests.npz" and kept.read_bytes() == b"nests"
