"""Real schedules from the real plug-in, made once; and TensorFlow, imported once."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest

from autotune_loop.featurization import Featurization, read_featurization
from autotune_loop.sample_file import Sample
from benchmarks.random_schedules import RandomSchedule, sample_schedules
from targets.halide_install import find_halide_install
from weights.baseline import baseline_weights
from weights.perturb import perturb_weights
from weights.weights_file import Weights, write_weights


@dataclass(frozen=True)
class PluginSearch:
    """What the plug-in found and said with certain weights."""

    weights: Weights
    num_cores: int
    schedules: tuple[RandomSchedule, ...]
    standard_output: str

    def featurizations(self) -> list[Featurization]:
        return [read_featurization(schedule.featurization_path) for schedule in self.schedules]


@pytest.fixture(scope="session")
def baseline() -> Weights:
    return baseline_weights(find_halide_install().plugin_path("Adams2019"))


@pytest.fixture(scope="session")
def searches(baseline: Weights, tmp_path_factory: pytest.TempPathFactory) -> list[PluginSearch]:
    """Four pipelines, two core counts, two sets of weights written by us."""
    folder = tmp_path_factory.mktemp("searches")
    found = []
    for index, (pipeline, count) in enumerate({"blur": 40, "unsharp": 30, "conv": 8, "pyramid": 16}.items()):
        for num_cores in (2, 32):
            weights = perturb_weights(baseline, 0.2, seed=index) if (index + num_cores // 32) % 2 else baseline
            weights_path = folder / "used.weights"
            write_weights(weights, weights_path)
            place = folder / pipeline / str(num_cores)
            log = sample_schedules(
                pipeline, range(count), num_cores, place, os.environ, weights_path=weights_path, timeout_s=120
            )
            found.append(PluginSearch(weights, num_cores, log.schedules, log.standard_output))
    return found


@pytest.fixture(scope="session")
def tensorflow_ready() -> None:
    """Import TensorFlow with its own warnings kept out of the tests."""
    from autotune_loop.cost_model.tensorflow_setup import limit_threads

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        limit_threads(1)


@pytest.fixture(scope="session")
def samples(searches: list[PluginSearch]) -> list[Sample]:
    """Distinct schedules of the pipelines, with the plug-in's cost under its own weights as their runtime."""
    distinct = {}
    for search in searches:
        for schedule, featurization in zip(search.schedules, search.featurizations(), strict=True):
            sample = Sample(featurization, schedule.plugin_cost_ms, schedule_id=schedule.seed)
            distinct.setdefault((featurization.pipeline_id, featurization.schedule_sha256), sample)
    return list(distinct.values())


@pytest.fixture
def featurization_paths(searches: list[PluginSearch]) -> list[Path]:
    return [schedule.featurization_path for schedule in searches[0].schedules]
