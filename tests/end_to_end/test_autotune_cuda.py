"""The loop for an NVIDIA card: without one, with a stand-in for the driver, and on a real one where there is one."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.autotune_loop.run.result import Outcome, TuneResult
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.weights.network import Network
from halide_autotune.weights.weights_file import read_weights
from tests.end_to_end.conftest import QUICK_LEARNING
from tests.end_to_end.run_files import check_header, check_run_folder, rows
from tests.flat_tuning import tune_flat
from tests.halide_tool import check_every_sample_was_read, run_halides_tool
from tests.stand_in_cuda import StandInCuda, build_stand_in_cuda

SAMPLING: dict[str, Any] = {"batch_size": 10, "pool_factor": 1.0, "seed": 3}


def has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> StandInCuda:
    return build_stand_in_cuda(tmp_path_factory.mktemp("stand_in"))


@pytest.mark.skipif(has_driver(), reason="there is a CUDA driver")
def test_without_a_card_there_is_one_message(examples: Path, settings: Settings, tmp_path: Path) -> None:
    start = [
        sys.executable,
        "-c",
        "import sys, halide_autotune.sdk.main as sdk_main; sys.exit(sdk_main.main())",
    ]
    command = [*start, "autotune", str(examples / "separable_filter.py"), "--target", "cuda-sm80"]
    environment = {**settings.environment, "PYTHONPATH": str(examples.parent)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and not list(tmp_path.iterdir())
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("sdk: This machine cannot run kernels")
    assert "there is no CUDA driver (libcuda.so)" in done.stderr
    assert "`sdk devices add NAME --ssh USER@HOST --target PROFILE`" in done.stderr


@pytest.mark.slow
def test_the_loop_with_a_stand_in_for_the_driver(
    stand_in: StandInCuda, examples: Path, settings: Settings, halide: HalideInstall, tmp_path: Path
) -> None:
    """Everything but the kernels is real; their times say nothing. The stand-in's blocks have at most 256 threads."""
    notices: list[str] = []
    environment = stand_in.environment(settings.environment, threads=256, processes=1)
    result = tune_flat(
        str(examples / "separable_filter.py"),
        target="cuda-sm86",
        parameters=("width=192", "height=96"),
        rounds=1,
        **SAMPLING,
        **QUICK_LEARNING,
        full_search_limit_s=3.0,
        run_folder=tmp_path / "run",
        settings=replace(settings, environment=environment),
        listen=lambda event: notices.append(str(getattr(event, "text", ""))),
    )
    assert result.outcome is Outcome.FINISHED and result.best.confirmed
    check_run_folder(result, "separable_filter", "wall", Network.ANDERSON2021)
    said = "\n".join(notices)
    assert "The card is Stand-in 0 ?no card? (compute capability 8.6, 20 multiprocessors)" in said
    assert "is in use by 1 other process" in said and "Li2018's schedule, takes" in said
    # What the search was told is what the card says, not the profile.
    header = result.best.header
    assert header is not None
    check_header(header, "separable_filter")
    recorded = (result.run_folder / "run.toml").read_text()
    assert "\nparallelism = 20\n" in recorded and "Anderson2021" in recorded
    dropped = rows(result.run_folder, "SELECT stage, message FROM failures WHERE reason = 'unrunnable'")
    assert dropped and result.totals.failures["build: unrunnable"] == sum(stage == "build" for stage, _ in dropped)
    assert all("threads per block" in message and "256" in message for _, message in dropped)
    _check_learning(result, tmp_path)


def _check_learning(result: TuneResult, folder: Path) -> None:
    """Halide's own tool trains on the run's samples, from its weights."""
    assert read_weights(result.weights).network is Network.ANDERSON2021
    samples = sorted((result.run_folder / "samples").rglob("*.sample"))
    done = run_halides_tool(Network.ANDERSON2021, samples, result.weights, folder, epochs=2)
    check_every_sample_was_read(done.stdout + done.stderr, len(samples))
    assert read_weights(folder / "tool.weights").network is Network.ANDERSON2021


@pytest.mark.hardware
@pytest.mark.slow
def test_the_loop_on_a_real_card(examples: Path, settings: Settings, tmp_path: Path) -> None:
    """The card is this machine's own; its capability is 7.5 or more."""
    if not has_driver():
        pytest.skip("there is no CUDA driver")
    result = tune_flat(
        str(examples / "separable_filter.py"),
        target="cuda-sm75",
        rounds=2,
        **SAMPLING,
        run_folder=tmp_path / "run",
        settings=settings,
    )
    assert result.outcome is Outcome.FINISHED and result.best.confirmed
    check_run_folder(result, "separable_filter", "wall", Network.ANDERSON2021)
    assert result.best.tuned_ms is not None and result.best.default_ms is not None
    assert result.best.tuned_ms <= 1.1 * result.best.default_ms
    assert not any("wrong output" in reason for reason in result.totals.failures), result.totals.failures
    # A card takes well under a millisecond for two megapixels; a processor's core does not.
    assert result.best.tuned_ms < 5
