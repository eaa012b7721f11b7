"""The process that TensorFlow lives in: the same figures as in this process, and every way it can end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import get_args

import numpy as np
import psutil
import pytest

from halide_autotune.autotune_loop.cost_model.cost_model import CostModel
from halide_autotune.autotune_loop.cost_model.process.child_process import ModelProcessError
from halide_autotune.autotune_loop.cost_model.process.model_process import ModelProcess
from halide_autotune.autotune_loop.cost_model.training_report import TrainingOutcome
from halide_autotune.autotune_loop.cost_model.tree_gru.loop_paths import loop_paths
from halide_autotune.autotune_loop.cost_model.tree_gru.training import TreeGruProblem, train_tree_gru
from halide_autotune.autotune_loop.cost_model.tree_gru.weights import tree_gru_scores
from halide_autotune.autotune_loop.specification.options import LearnOptions, Loss
from halide_autotune.autotune_loop.store.featurization import format_featurization
from halide_autotune.autotune_loop.store.sample_file import Sample
from halide_autotune.targets.errors import WeightsError
from halide_autotune.weights.arithmetic import perturb_weights
from halide_autotune.weights.weights_file import Weights, read_weights, weights_sha256, write_weights
from tests.measured_candidates import training_sample
from tests.process_state import await_condition
from tests.unit.autotune_loop.cost_model.conftest import PluginSearch
from tests.unit.autotune_loop.cost_model.tree_gru.timed_nests import timed_nest

pytestmark = [pytest.mark.toolchain, pytest.mark.usefixtures("own_processes")]

NUM_CORES = 2


def model_process(weights_path: Path, folder: Path) -> ModelProcess:
    # TensorFlow leaves the code that it writes where the process is killed.
    return ModelProcess(NUM_CORES, weights_path, folder / "model.log", {**os.environ, "TMPDIR": str(folder)})


@pytest.fixture(scope="module")
def weights_path(baseline: Weights, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "baseline.weights"
    write_weights(baseline, path)
    return path


@pytest.fixture(scope="module")
def process(weights_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelProcess]:
    with model_process(weights_path, tmp_path_factory.mktemp("model")) as started:
        yield started


@pytest.mark.usefixtures("tensorflow_ready")
def test_networks_that_walk_loops_are_trained_there(process: ModelProcess) -> None:
    nests = [timed_nest(seed) for seed in range(20)]
    paths, log_times = loop_paths([rows for rows, _ in nests]), np.array([log for _, log in nests])
    problem = TreeGruProblem(paths, log_times, np.zeros(20), np.ones((2, 20), np.int64), uses_ranks=True, seed=1)
    scores = [
        tree_gru_scores(weights, paths, problem.foreseen)
        for weights in (process.train_tree_gru(problem), train_tree_gru(problem))
    ]
    assert scores[0] == pytest.approx(scores[1], abs=1e-3)


@pytest.mark.usefixtures("tensorflow_ready")
def test_predictions_are_those_of_the_model(
    process: ModelProcess, searches: list[PluginSearch], baseline: Weights, weights_path: Path
) -> None:
    other = perturb_weights(baseline, 0.2, seed=9)
    write_weights(other, weights_path.with_name("other.weights"))
    for search in searches:
        paths = [schedule.featurization_path for schedule in search.schedules]
        expected_ms = CostModel(baseline, NUM_CORES).predict(search.featurizations())
        assert process.predict(paths) == pytest.approx(list(expected_ms), rel=1e-6)
    process.load_weights(weights_path.with_name("other.weights"))
    expected_ms = CostModel(other, NUM_CORES).predict(search.featurizations())
    assert process.predict(paths) == pytest.approx(list(expected_ms), rel=1e-6)
    process.load_weights(weights_path)


def test_an_unreadable_featurization_predicts_none(
    process: ModelProcess, featurization_paths: list[Path], tmp_path: Path
) -> None:
    (tmp_path / "short.featurization").write_bytes(b"1234")
    paths = [tmp_path / "gone", featurization_paths[0], tmp_path / "short.featurization", tmp_path]
    predictions_ms = process.predict(paths)
    assert [prediction is None for prediction in predictions_ms] == [True, False, True, True]
    assert process.predict([]) == []


def test_unusable_weights_leave_the_old_ones(
    process: ModelProcess, featurization_paths: list[Path], tmp_path: Path
) -> None:
    before = process.predict(featurization_paths)
    (tmp_path / "bad.weights").write_bytes(b"nonsense")
    with pytest.raises(WeightsError, match=r"bad\.weights is damaged"):
        process.load_weights(tmp_path / "bad.weights")
    assert process.predict(featurization_paths) == before


def test_samples_train_into_weights(
    process: ModelProcess, searches: list[PluginSearch], baseline: Weights, weights_path: Path, tmp_path: Path
) -> None:
    nothing_yet = process.train(LearnOptions(), 0)
    assert (nothing_yet.outcome, nothing_yet.weights) == (TrainingOutcome.TOO_FEW_SAMPLES, None)
    good = [training_sample(s.featurization_path, s.plugin_cost_ms) for search in searches for s in search.schedules]
    bad = [
        training_sample(tmp_path / "gone", 1.0),
        training_sample(good[0].featurization_path, float("nan"), 5),
    ]
    rejected = process.add_samples([bad[0], *good, bad[1]])
    assert [sample.featurization_path for sample, _ in rejected] == [b.featurization_path for b in bad]
    assert "cannot be read" in rejected[0][1] and "nan ms" in rejected[1][1]
    for loss in get_args(Loss):
        output = tmp_path / f"{loss}.weights"
        report = process.train(LearnOptions(epochs=50, learning_rate=5e-4, loss=loss, held_out_share=0.0), 0)
        assert report.accepted, report.reason
        assert len(report.losses) == 50
        assert report.weights is not None
        write_weights(report.weights, output)
        assert weights_sha256(report.weights) != weights_sha256(baseline)
        assert (process.score(weights_path), process.score(output)) == (report.before, report.after)


def test_a_process_for_gpus(
    gpu_searches: list[PluginSearch],
    gpu_samples: list[Sample],
    gpu_baseline: Weights,
    searches: list[PluginSearch],
    tmp_path: Path,
) -> None:
    start, other = tmp_path / "gpu.weights", tmp_path / "cpu.weights"
    write_weights(gpu_baseline, start)
    write_weights(searches[0].weights, other)
    cpu_path = searches[0].schedules[0].featurization_path
    paths = [tmp_path / f"{index}.featurization" for index in range(len(gpu_samples))]
    for path, sample in zip(paths, gpu_samples, strict=True):
        path.write_bytes(format_featurization(sample.featurization))
    with model_process(start, tmp_path) as process:
        expected_ms = CostModel(gpu_baseline, NUM_CORES).predict([sample.featurization for sample in gpu_samples])
        assert process.predict([*paths, cpu_path]) == [*(pytest.approx(ms, rel=1e-5) for ms in expected_ms), None]
        good = [training_sample(path, sample.runtime_ms) for path, sample in zip(paths, gpu_samples, strict=True)]
        ((rejected, reason),) = process.add_samples([*good, training_sample(cpu_path, 1.0)])
        assert rejected.featurization_path == cpu_path
        assert "for Adams2019, but the weights in use are for Anderson2021" in reason
        with pytest.raises(WeightsError, match="for Adams2019, but this run searches with Anderson2021"):
            process.load_weights(other)
        report = process.train(LearnOptions(epochs=50, learning_rate=5e-4), 0)
        assert report.weights is not None, report.reason
        write_weights(report.weights, tmp_path / "trained.weights")
        assert report.training_samples + report.held_out_samples == len(gpu_samples)
        process.load_weights(tmp_path / "trained.weights")
        trained_ms = CostModel(read_weights(tmp_path / "trained.weights"), NUM_CORES).predict(
            [gpu_samples[0].featurization]
        )
        assert process.predict(paths[:1]) == [pytest.approx(trained_ms[0], rel=1e-5)]


def test_a_failed_request_leaves_the_process_usable(process: ModelProcess) -> None:
    with pytest.raises(ModelProcessError, match="failed unexpectedly: ValueError"):
        process.train(LearnOptions(epochs="many"), 0)  # type: ignore[arg-type]  # the wrong type is the test
    assert process.predict([]) == []


def test_a_process_is_started_once(process: ModelProcess) -> None:
    with pytest.raises(ModelProcessError, match="started twice"):
        process.start()


def test_threads_may_share_the_process(process: ModelProcess, featurization_paths: list[Path]) -> None:
    expected = process.predict(featurization_paths)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda n: process.predict(featurization_paths[:n]), range(1, 30)))
    for count, answer in enumerate(answers, start=1):  # rounding depends on how many are predicted at once
        assert answer == pytest.approx(expected[:count], rel=1e-5)


def test_unusable_starting_weights_are_told_at_the_first_request(tmp_path: Path) -> None:
    with model_process(tmp_path / "gone.weights", tmp_path) as process:
        with pytest.raises(WeightsError, match=r"gone\.weights cannot be read"):
            process.predict([])
        with pytest.raises(ModelProcessError, match="ended"):
            process.predict([])


def test_a_request_before_the_start_is_refused(weights_path: Path, tmp_path: Path) -> None:
    process = model_process(weights_path, tmp_path)
    process.close()
    with pytest.raises(ModelProcessError, match="before it was started"):
        process.predict([])


def test_a_killed_child_is_an_error_and_closing_is_still_fine(weights_path: Path, tmp_path: Path) -> None:
    own_weights = Path(shutil.copy(weights_path, tmp_path / "own.weights"))
    process = model_process(own_weights, tmp_path)
    process.start()
    os.kill(_child_pid(os.getpid(), own_weights), signal.SIGKILL)
    with pytest.raises(ModelProcessError, match="killed by signal 9"):
        process.predict([])
    process.close()


def test_the_child_ends_with_a_killed_parent(weights_path: Path, tmp_path: Path) -> None:
    program = (
        "import os, sys, time\nfrom pathlib import Path\n"
        "from halide_autotune.autotune_loop.cost_model.process.model_process import ModelProcess\n"
        "process = ModelProcess(2, Path(sys.argv[1]), Path(sys.argv[2]), os.environ)\n"
        "process.start(); process.predict([]); print('ready', flush=True); time.sleep(600)\n"
    )
    command = [sys.executable, "-c", program, str(weights_path), str(tmp_path / "model.log")]
    root = Path(__file__).resolve().parents[5]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root, env=environment) as parent:
        try:
            assert parent.stdout is not None and parent.stdout.readline() == "ready\n"
            child = _child_pid(parent.pid, weights_path)
        finally:
            parent.kill()
    deadline_s = time.monotonic() + 240
    while _is_running(child) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert not _is_running(child)


def _child_pid(parent: int, argument: Path) -> int:
    """The child of `parent` whose command line holds `argument`; one that has just begun shows none yet."""

    def found() -> list[int]:
        return [child.pid for child in psutil.Process(parent).children() if str(argument) in child.cmdline()]

    await_condition(found, "the child's command line")
    (pid,) = found()
    return pid


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
