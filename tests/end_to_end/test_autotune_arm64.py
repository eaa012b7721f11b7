"""The whole loop for another architecture, under the emulator."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.run.result import Outcome
from tests.end_to_end.conftest import Tune
from tests.end_to_end.run_files import check_header, check_run_folder, rows

pytestmark = pytest.mark.skipif(not shutil.which("qemu-aarch64"), reason="qemu-aarch64 is not installed")


@pytest.mark.slow
def test_a_python_generator_for_arm64(tune: Tune, examples: Path, tmp_path: Path) -> None:
    result = tune(
        str(examples / "separable_filter.py"),
        target="arm64",
        parameters=["width=64", "height=32", "channels=1"],
        rounds=1,
        run_folder=tmp_path / "run",
    )
    assert result.outcome is Outcome.FINISHED
    assert (result.target, result.device, result.clock) == ("arm64", "qemu", "simulated")
    check_run_folder(result, "separable_filter", "simulated")
    best = result.best
    assert best.header is not None and best.confirmed
    check_header(best.header, "separable_filter")
    # How large batches are is reckoned from what timing takes here, and not from the simulated time.
    held = rows(result.run_folder, "SELECT device_held_s, median_ms FROM measurements WHERE purpose = 'reference'")
    assert held and all(held_s > median_ms * 1e-3 for held_s, median_ms in held)
    assert "arm-64-linux" in best.header.read_text()
    assert "(simulated time" in best.header.with_name("best.separable_filter.benchmark.txt").read_text()
