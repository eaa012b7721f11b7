"""Candidates with made-up times."""

from __future__ import annotations

from pathlib import Path

from halide_autotune.autotune_loop.candidate import Candidate, Measured, Origin, SearchPoint, TrainingSample


def measured(median_ms: float, round_index: int = 0, sample_index: int = 0, origin: Origin = Origin.RANDOM) -> Measured:
    point = SearchPoint(origin, sample_index, 32, 100, Path("used.weights"))
    symbol = f"kernel_r{round_index}_a0_s{sample_index}"
    return Measured(Candidate(round_index, 0, sample_index, symbol, point, "", 0.1), median_ms, 0.1, "wall")


def training_sample(featurization_path: Path, median_ms: float, pipeline_id: int = 1) -> TrainingSample:
    return TrainingSample(measured(median_ms), featurization_path, pipeline_id)
