"""A recorded run gone through again: every time is looked up once, and the same strategy gives the same order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.report.recorded_run import read_recorded_run
from halide_autotune.autotune_loop.report.replay import Replay, ReplayedRound, ReplayRequest, replay
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import RunFolderError, WeightsError
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.profile.profile import AutoschedulerChoice
from halide_autotune.weights.baseline import baseline_weights
from halide_autotune.weights.weights_file import Weights
from tests.recorded_run_folder import write_run_folder
from tests.run_specs import make_spec

SAMPLES = 48


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("runs") / "run"
    write_run_folder(made, SAMPLES)
    return made


def run(
    folder: Path, settings: Settings, scratch: Path, weights: Weights | None = None, rounds: int = 100
) -> tuple[list[Replay], list[ReplayedRound]]:
    scratch.mkdir()
    heard: list[ReplayedRound] = []
    request = ReplayRequest(
        folder,
        RunOptions.of(batch_size=10, epochs=5, rounds=rounds),
        weights,
        settings.environment,
        scratch,
    )
    return replay(request, heard.append, StopSignal()), heard


@pytest.mark.toolchain
def test_every_recorded_time_is_looked_up_once_and_equal_replays_are_equal(
    folder: Path, settings: Settings, tmp_path: Path
) -> None:
    (result,), heard = run(folder, settings, tmp_path / "a")
    recorded_ms = [sample.median_ms for sample in read_recorded_run(folder).samples]
    assert sorted(result.order_ms) == sorted(recorded_ms) and result.recorded == SAMPLES
    assert tuple(heard) == result.rounds
    assert [done.timed for done in heard] == [10, 20, 30, 40, 48]
    assert heard[-1].best_ms == result.best_ms == min(recorded_ms)
    assert heard[-1].shuffled_best_ms == pytest.approx(result.best_ms)
    bests = [done.best_ms for done in heard]
    assert bests == sorted(bests, reverse=True)
    near = result.samples_until(0.0)
    assert near is not None and result.order_ms[near - 1] == result.best_ms
    (again,), _ = run(folder, settings, tmp_path / "b", rounds=2)
    assert again.order_ms == result.order_ms[:20] and again.samples_until(-1.0) is None


@pytest.mark.parametrize("damage", ["features", "weights", "network", "autoscheduler"])
def test_what_cannot_be_replayed_is_one_message(
    damage: str, settings: Settings, halide: HalideInstall, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    spec = make_spec()
    if damage == "autoscheduler":
        spec = replace(spec, profile=replace(spec.profile, autoscheduler=AutoschedulerChoice("Mullapudi2016", {})))
    write_run_folder(folder, 3, spec=spec)
    weights: Weights | None = None
    if damage == "features":
        for path in folder.rglob("*.featurization"):
            path.write_bytes(b"torn")
    elif damage == "weights":
        (folder / "samples" / "batch_0_0" / "used.weights").write_bytes(b"torn")
    elif damage == "network":
        weights = baseline_weights(halide.plugin_path("Anderson2021"))
    with pytest.raises((RunFolderError, WeightsError)) as caught:
        run(folder, settings, tmp_path / "scratch", weights)
    assert "\n" not in str(caught.value)
