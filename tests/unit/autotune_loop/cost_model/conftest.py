"""Real schedules from the real plug-ins, made once; made-up ones for a GPU; and TensorFlow, imported once."""

from __future__ import annotations

import json
import os
import unittest.mock
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.random_schedules import RandomSchedule, SearchLog, sample_schedules
from halide_autotune.autotune_loop.cost_model.cost_model import CostModel
from halide_autotune.autotune_loop.cost_model.process import model_process
from halide_autotune.autotune_loop.cost_model.process.child_process import ChildProcess
from halide_autotune.autotune_loop.store.featurization import Featurization, read_featurization
from halide_autotune.autotune_loop.store.sample_file import Sample
from halide_autotune.targets.halide_install import find_halide_install
from halide_autotune.targets.process.file_lock import file_lock
from halide_autotune.targets.values.records import plain, record
from halide_autotune.weights.arithmetic import perturb_weights
from halide_autotune.weights.baseline import baseline_weights
from halide_autotune.weights.weights_file import Weights, write_weights

GPU_SCHEDULES = Path(__file__).parent / "anderson2021_schedules"
# Such that in a schedule of the examples no kind of work is drowned by another.
GPU_PRICES = "3 10 30 11 50 300 1 3 30 4e3 12 4 13 90 2e3 1e5 40 40 900 70 4 5e3 14 1 2e5 1e10 1e6 7 100 8 1 1".split()
INLINED_CALLS, IDLE_LANE_WASTAGE, EFFICIENCIES = 18, 57, slice(62, 66)


@dataclass(frozen=True)
class PluginSearch:
    """What the plug-in found and said with certain weights."""

    weights: Weights
    num_cores: int
    schedules: tuple[RandomSchedule, ...]
    standard_output: str

    def featurizations(self) -> list[Featurization]:
        network = self.weights.network
        return [read_featurization(schedule.featurization_path, network) for schedule in self.schedules]


@pytest.fixture(scope="module")
def own_processes() -> Iterator[None]:
    """Cost models have processes of their own, which end where they are killed; forks of a shared one go on."""
    with unittest.mock.patch.object(model_process, "ChildProcess", ChildProcess):
        yield


@pytest.fixture(scope="session")
def baseline() -> Weights:
    return baseline_weights(find_halide_install().plugin_path("Adams2019"))


@pytest.fixture(scope="session")
def gpu_baseline() -> Weights:
    return baseline_weights(find_halide_install().plugin_path("Anderson2021"))


@pytest.fixture(scope="session")
def gpu_priced(gpu_baseline: Weights) -> Weights:
    """Weights whose prices are the same for every stage: with the baseline's, half of the terms cost nothing."""
    prices = np.array(GPU_PRICES, dtype=np.float32)
    return replace(gpu_baseline, conv1_filter=np.zeros((32, 32), dtype=np.float32), conv1_bias=prices)


@pytest.fixture(scope="session")
def gpu_searches(gpu_baseline: Weights, gpu_priced: Weights) -> list[PluginSearch]:
    """Schedules of the examples that Anderson2021 of Halide 21 found, and what it printed of them."""
    choices = {
        "baseline": gpu_baseline,
        "perturbed": perturb_weights(gpu_baseline, 0.2, seed=1),
        "priced": gpu_priced,
    }
    found = []
    for entry in json.loads((GPU_SCHEDULES / "costs.json").read_text()):
        path = GPU_SCHEDULES / entry["featurization"]
        schedule = RandomSchedule(path.stem, 0, path, entry["plugin_cost_ms"], None)
        found.append(PluginSearch(choices[entry["weights"]], entry["num_cores"], (schedule,), ""))
    return found


@pytest.fixture(scope="session")
def gpu_samples(tensorflow_ready: None, gpu_baseline: Weights) -> list[Sample]:
    """60 made-up schedules of one pipeline in which every feature counts; runtimes from other weights, with noise."""
    random = np.random.default_rng(5)
    pipeline_features = random.integers(0, 9, (3, 287)).astype(np.float32)
    featurizations = []
    for _ in range(60):
        features = np.exp(random.uniform(0, 9, (3, 73)))
        features[:, INLINED_CALLS] *= random.integers(0, 2, 3)
        features[:, IDLE_LANE_WASTAGE] = random.uniform(0, 0.9, 3)
        features[:, EFFICIENCIES] = random.uniform(0.05, 1, (3, 4))
        featurizations.append(Featurization(features.astype(np.float32), pipeline_features))
    costs_ms = CostModel(perturb_weights(gpu_baseline, 0.3, seed=3), 32).predict(featurizations)
    runtimes_ms = costs_ms * np.exp(0.1 * random.standard_normal(60))
    return [
        Sample(f, float(t), f.pipeline_id, i) for i, (f, t) in enumerate(zip(featurizations, runtimes_ms, strict=True))
    ]


@pytest.fixture(scope="session")
def searches(baseline: Weights, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> list[PluginSearch]:
    """Four pipelines, two core counts, two sets of weights written by us; one worker searches for all."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "searches"
    folder.mkdir(exist_ok=True)
    found = []
    with file_lock(folder):
        for index, (pipeline, count) in enumerate({"blur": 40, "unsharp": 30, "conv": 8, "pyramid": 16}.items()):
            for num_cores in (2, 32):
                weights = perturb_weights(baseline, 0.2, seed=index) if (index + num_cores // 32) % 2 else baseline
                log = _kept_search(pipeline, count, num_cores, weights, folder / pipeline / str(num_cores))
                found.append(PluginSearch(weights, num_cores, log.schedules, log.standard_output))
    return found


def _kept_search(pipeline: str, count: int, num_cores: int, weights: Weights, folder: Path) -> SearchLog:
    kept = folder / "log.json"
    if not kept.exists():
        folder.mkdir(parents=True, exist_ok=True)
        weights_path = folder / "used.weights"
        write_weights(weights, weights_path)
        log = sample_schedules(
            pipeline, range(count), num_cores, folder, os.environ, weights_path=weights_path, timeout_s=1200
        )
        kept.write_text(json.dumps(plain(log)))
    return record(SearchLog)(json.loads(kept.read_text()))


@pytest.fixture(scope="session")
def samples(searches: list[PluginSearch]) -> list[Sample]:
    """Distinct schedules of the pipelines, with the plug-in's cost under its own weights as their runtime."""
    distinct: dict[object, Sample] = {}
    for search in searches:
        for schedule, featurization in zip(search.schedules, search.featurizations(), strict=True):
            sample = Sample(featurization, schedule.plugin_cost_ms, featurization.pipeline_id, schedule.seed)
            distinct.setdefault((featurization.pipeline_id, featurization.schedule_sha256), sample)
    return list(distinct.values())


@pytest.fixture
def featurization_paths(searches: list[PluginSearch]) -> list[Path]:
    return [schedule.featurization_path for schedule in searches[0].schedules]
