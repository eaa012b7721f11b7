"""`sdk weights train`: wrong use is told in one sentence, before anything is built; what it says at the end."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path

import pytest

import halide_autotune.sdk.main as sdk_main
from halide_autotune.autotune_loop.cost_model.ranking import RankingScores
from halide_autotune.autotune_loop.training.trained_weights import Counts, Scores, TrainedWeights
from halide_autotune.autotune_loop.training.training_folder import TrainingRecord, begin_training
from halide_autotune.autotune_loop.training.training_options import TrainingOptions
from halide_autotune.targets.process.file_lock import file_lock

EARLIER = RankingScores(40, 150, 0.65, 1.4, 1.2, 0.3)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SDK_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = sdk_main.main(["weights", "train", *arguments])
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    return code, said.out, said.err


def begun(folder: Path) -> Path:
    options = TrainingOptions.of(target="x86-64", programs=4)
    return begin_training(folder, TrainingRecord("x86-64", "wall", 1024, 768, options)).path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--target", "x86-46"), "x86-64"),
        (("--size", "big"), "--size must be a width and a height"),
        (("--budget", "soon"), "soon"),
        (("--programs", "0"), "--programs must be"),
        (("--target", "cuda-sm80"), "Weights are trained for Adams2019"),
        (("--device", "nobody"), "nobody"),
    ],
)
def test_wrong_use_is_told_and_nothing_is_written(
    arguments: tuple[str, ...], said: str, own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, told = run(capsys, *arguments)
    assert code in (1, 2) and said in told
    assert not (own_folder / "tuned").exists()


def test_a_training_goes_on_only_as_it_was_begun(own_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = begun(own_folder / "training")
    code, _, told = run(capsys, "--run-dir", str(folder), "--programs", "8")
    assert code == 2 and "was begun with --programs 4, not --programs 8. Leave --programs out" in told


def test_two_do_not_train_in_one_folder(own_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = begun(own_folder / "training")
    with file_lock(folder, fcntl.LOCK_EX):
        code, _, told = run(capsys, "--run-dir", str(folder))
    assert code == 1 and f"Another process trains in {folder}. Wait for it" in told


def test_a_budget_without_time_says_how_to_go_on(own_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = begun(own_folder / "training")
    code, _, told = run(capsys, "--run-dir", str(folder), "--budget", "1s")
    assert code == 1 and "has not come to the end of its first iteration. Give the same command again" in told


def test_what_is_learnt_of_loop_nests_is_kept_where_the_earlier_weights_stay(
    own_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = Scores(EARLIER, EARLIER, (0.5, 1.3), (0.62, 1.1))
    counts, nests = Counts(20, 480, 4, 96), own_folder / "x86-64.nests.npz"
    result = TrainedWeights(own_folder, own_folder / "w.weights", 3, counts, scores, False, "x86-64", nests)
    monkeypatch.setattr("halide_autotune.sdk.api.weights.train_weights.train_weights", lambda **given: result)
    code, shown, _ = run(capsys)
    assert code == 0
    assert (
        "no better than the earlier weights, so those stay. What was learnt of loop nests is kept as x86-64." in shown
    )


@pytest.mark.parametrize(
    ("gain", "was_interrupted", "why"),
    [
        (0.93, False, "find schedules 0.93 times as fast."),
        (0.93, False, "Searches with them find slower schedules, so those stay."),
        (None, True, "They have not been tried in searches yet, so those stay."),
    ],
)
def test_why_weights_that_order_more_are_not_kept(
    gain: float | None,
    was_interrupted: bool,
    why: str,
    own_folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scores = Scores(EARLIER, RankingScores(40, 150, 0.71, 1.3, 1.1, 0.4), search_gain=gain)
    result = TrainedWeights(
        own_folder, own_folder / "w.weights", 3, Counts(20, 480, 4, 96), scores, False, was_interrupted=was_interrupted
    )
    monkeypatch.setattr("halide_autotune.sdk.api.weights.train_weights.train_weights", lambda **given: result)
    code, shown, _ = run(capsys)
    assert code == (130 if was_interrupted else 1) and why in shown


@pytest.mark.parametrize("better", [True, False])
def test_the_scores_are_shown_beside_the_earlier_ones(
    better: bool, own_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = RankingScores(40, 150, 0.71 if better else 0.6, 1.3, 1.1, 0.4)
    scores = Scores(EARLIER, trained, (0.5, 1.3), (0.62, 1.1))
    result = TrainedWeights(
        own_folder, own_folder / "x86-64.weights", 3, Counts(20, 480, 4, 96), scores, better, "x86-64" if better else ""
    )
    monkeypatch.setattr("halide_autotune.sdk.api.weights.train_weights.train_weights", lambda **given: result)
    code, shown, _ = run(capsys)
    assert code == (0 if better else 1)
    assert ("480 schedules of 20 random programs in 3 iterations" in shown and "71 %" in shown) or not better
    assert ("kept as x86-64" in shown) is better and ("so those stay" in shown) is not better
    code, shown, _ = run(capsys, "--json")
    assert code == (0 if better else 1)
    told = json.loads(shown)
    assert told["are_better"] is better and told["before"]["pairwise_accuracy"] == 0.65 and told["schedules"] == 480
