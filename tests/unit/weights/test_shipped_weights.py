"""The weights that come with the SDK: sound, of this Halide, and with a past that names them."""

from __future__ import annotations

from pathlib import Path

from halide_autotune.autotune_loop.search.models.nest_prior import read_prior
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.weights.baseline import baseline_weights
from halide_autotune.weights.registry import WeightsRegistry, nearest_weights, nest_prior_beside
from halide_autotune.weights.weights_file import FEATURE_VERSION, weights_sha256


def test_shipped_weights_are_sound_and_say_where_they_come_from(halide: HalideInstall, tmp_path: Path) -> None:
    shipped, damaged = WeightsRegistry(tmp_path / "none").entries()
    assert damaged == [] and "x86-64" in [entry.name for entry in shipped]
    for entry in shipped:
        lineage = entry.lineage
        halides = baseline_weights(halide.plugin_path(lineage.network))
        assert entry.is_shipped and entry.name == lineage.profile == load_profile(lineage.profile).name
        assert lineage.parent_sha256 == weights_sha256(halides)
        assert (lineage.halide_version, lineage.feature_version) == (halide.version, FEATURE_VERSION)
        training = lineage.training
        assert training.pairwise_accuracy and training.held_out_samples >= 200
        if entry.sha256 == lineage.parent_sha256:
            assert training.samples == 0 and lineage.note.startswith("Halide's own"), "the card says that they stay"
            assert nest_prior_beside(entry.path).is_file() and read_prior(nest_prior_beside(entry.path)) is not None
        else:
            assert training.samples >= 400 and training.pipelines >= 20
            assert training.best_in_top_8 and "train" in lineage.note


def test_a_new_run_starts_from_them(tmp_path: Path) -> None:
    entries, _ = WeightsRegistry(tmp_path / "none").entries()
    found = nearest_weights(entries, ["x86-64"], "local", "Adams2019", "wall")
    assert found is not None and found.name == "x86-64"
    assert nearest_weights(entries, ["x86-64"], "qemu", "Adams2019", "simulated") is None
    assert nearest_weights(entries, ["hexagon-v65"], "qemu", "Adams2019", "wall") is None
