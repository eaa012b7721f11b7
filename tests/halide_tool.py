"""Halide's own retraining programs, run on samples of ours."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from halide_autotune.targets.halide_install import find_halide_install
from halide_autotune.weights.network import Network

TOOL_CORES = 32


def run_halides_tool(
    network: Network, samples: Sequence[Path], start: Path, folder: Path, epochs: int, predictions: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Train from the weights `start` into `folder/tool.weights`.

    Args:
        predictions: Anderson2021's tool writes what it predicts there, and does not train.
    """
    command = [str(find_halide_install().bin_dir / f"{network.value.lower()}_retrain_cost_model")]
    command += [f"--epochs={epochs}", "--rates=0.0001", f"--num_cores={TOOL_CORES}"]
    command += [f"--initial_weights={start}", f"--weights_out={folder / 'tool.weights'}"]
    command += [f"--best_benchmark={folder / 'benchmark'}", f"--best_schedule={folder / 'schedule'}"]
    if network is Network.ANDERSON2021:
        command += ["--limit=0", "--verbose=1", "--partition_schedules=0", f"--predictions_file={predictions or ''}"]
    return subprocess.run(
        command,
        input="\n".join(map(str, samples)),
        env=dict(os.environ) | {"HL_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )


def check_every_sample_was_read(printed: str, samples: int) -> None:
    """The tool found each of them, and nothing wrong with any."""
    assert len(re.findall(r"^Unique sample:", printed, re.MULTILINE)) == samples
    assert not re.search(r"Truncated|Too-large|Implausible|Negative|Randomizing|WARNING", printed)
