"""Weights from random programs, for real: timed, killed, gone on with, judged, and begun from by the next iteration."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.report.recorded_run import read_recorded_run
from halide_autotune.autotune_loop.training import recipe
from halide_autotune.autotune_loop.training.programs import is_judged_by
from halide_autotune.autotune_loop.training.recipe import USUAL, TaughtWeights
from halide_autotune.sdk.api.weights.train_weights import train_weights
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.weights.arithmetic import perturb_weights
from halide_autotune.weights.lineage import read_lineage
from halide_autotune.weights.weights_file import read_weights, weights_sha256, write_weights
from tests.end_to_end.run_files import rows
from tests.farm_with_a_board import farm_with_a_board

# Two programs, of which the second judges. With this seed they are the shortest: of 4 and 5 stages.
OPTIONS = {"target": "host", "size": "64x48", "programs": 2, "batch_size": 8, "seed": 16, "parallelism": 1}
# Prints a line for every measurement that it was told of.
SCRIPT = """
import sys
from pathlib import Path
from halide_autotune.sdk.api.weights.train_weights import train_weights
from tests.end_to_end.test_train_weights import OPTIONS
def listen(event):
    if event.kind == "sample_measured":
        print(event.task_index, event.sample_index, flush=True)
train_weights(options=OPTIONS, folder=Path(sys.argv[1]), listen=listen)
"""
pytestmark = pytest.mark.usefixtures("tensorflow_ready", "forked_tensorflow")


@pytest.mark.slow
def test_a_training_is_killed_and_gone_on_with(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "training"
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder)], env=dict(settings.environment), stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    for _ in range(3):
        assert child.stdout.readline()
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    first = folder / "iteration_001"
    before = rows(first, "SELECT symbol, median_ms FROM measurements WHERE purpose = 'sample'")
    assert len(before) >= 3 and not (folder / "iteration_001.weights").exists()

    stop, told = StopSignal(), []

    def tell(text: str) -> None:
        told.append(text)
        if text.startswith("Iteration 1"):
            stop.set()

    result = train_weights(options=OPTIONS, folder=folder, budget_s=3600.0, tell=tell, stop=stop, settings=settings)
    assert (result.iterations, result.was_interrupted) == (1, True)
    after = rows(first, "SELECT symbol, median_ms FROM measurements WHERE purpose = 'sample'")
    assert set(before) <= set(after), "what was timed counts"
    assert {*rows(first, "SELECT DISTINCT purpose FROM measurements")} == {("reference",), ("sample",)}
    assert not rows(first, "SELECT * FROM verdicts") and not [*(first / "samples").glob("best.*")], "nothing is decided"
    assert not rows(first, "SELECT * FROM weights"), "and no model is trained: that is the training's"
    run = read_recorded_run(first)
    timed = [sum(1 for one in run.samples if one.candidate.task_index == place) for place in range(2)]
    seeds = [int(task.parameters["seed"]) for task in run.record.spec.tasks]
    assert [is_judged_by(seed) for seed in seeds] == [False, True]
    counts = result.counts
    assert (counts.schedules, counts.judging_schedules) == (timed[0], timed[1])
    nests = [first / "samples" / one.candidate.sample / "random_program.lowered" for one in run.samples]
    assert all(nest.is_file() for nest in nests), "loop nests are learnt from, too"
    (said,) = [text for text in told if text.startswith("Iteration 1")]
    assert f"{sum(timed)} schedules of 2 programs" in said
    lineage = read_lineage(result.weights, weights_sha256(read_weights(result.weights)))
    assert lineage is not None and lineage.profile == "host" and lineage.training.rounds == int(result.are_better)
    name = settings.config_folder / "weights" / "host.weights"
    is_kept = result.are_better or result.nest_prior is not None
    assert name.is_file() is is_kept is (result.kept_as == "host")
    _check_that_what_it_has_kept_is_replaced(folder, settings, monkeypatch)


def _check_that_what_it_has_kept_is_replaced(folder: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    name = settings.config_folder / "weights" / "host.weights"
    for seed in (1, 2):
        weights = perturb_weights(read_weights(folder / "iteration_001.weights"), 0.1, seed)
        taught = TaughtWeights(weights, 1, 8, USUAL)
        monkeypatch.setattr(recipe, "teach", lambda *given, taught=taught: taught)
        monkeypatch.setattr(recipe, "are_better", lambda after, before: True)
        monkeypatch.setattr(recipe, "is_no_slower", lambda gain: True)  # two programs tell nothing
        told: list[str] = []
        again = train_weights(options=OPTIONS, folder=folder, budget_s=1.0, tell=told.append, settings=settings)
        assert again.kept_as == "host" and not any("are kept" in text for text in told)
        assert again.scores.search_gain is not None and again.scores.search_gain > 0, "searches were tried with them"
        assert weights_sha256(read_weights(name)) == weights_sha256(weights)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("sshd", path="/usr/sbin:/usr/bin"), reason="sshd is not installed")
def test_on_a_farm_the_next_iteration_draws_other_programs_with_the_weights_of_before(
    settings: Settings, cache: ContentCache, tmp_path: Path
) -> None:
    folder, stop = tmp_path / "training", StopSignal()
    first = folder / "iteration_001.weights"

    def listen(event: object) -> None:
        if getattr(event, "kind", "") == "batch_done" and first.exists():
            stop.set()

    def tell(text: str) -> None:
        if text.startswith("Iteration 1"):  # so few schedules teach nothing
            write_weights(perturb_weights(read_weights(first), 0.1, 1), first)

    with farm_with_a_board(tmp_path, settings, cache, "trainer") as farm:
        place = {"target": "x86-64", "scheduler": farm.url, "farm_certificates": farm.user_folder}
        options = {**place, "size": "64x48", "programs": 1, "batch_size": 8}
        result = train_weights(
            options=options, folder=folder, budget_s=3600.0, listen=listen, tell=tell, stop=stop, settings=settings
        )
    assert result.iterations == 1 and result.was_interrupted
    runs = [read_recorded_run(folder / f"iteration_00{number}") for number in (1, 2)]
    assert [task.parameters["seed"] for run in runs for task in run.record.spec.tasks] == ["0", "1"]
    assert {sample.device for run in runs for sample in run.samples} == {"board"}
    learnt = weights_sha256(read_weights(first))
    assert runs[1].record.made_with.start_weights_sha256 == learnt != runs[0].record.made_with.start_weights_sha256
