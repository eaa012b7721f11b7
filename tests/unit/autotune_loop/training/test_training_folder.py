"""The folder of a training: what it keeps, and which iterations are over."""

from __future__ import annotations

from pathlib import Path

import pytest

from halide_autotune.autotune_loop.training.training_folder import TrainingRecord, begin_training, open_training
from halide_autotune.autotune_loop.training.training_options import TrainingOptions
from halide_autotune.targets.errors import RunFolderError

RECORD = TrainingRecord("arm64", "simulated", 256, 192, TrainingOptions.of(target="arm64", device=["qemu"], seed=5))


def test_a_training_is_opened_as_it_was_begun(tmp_path: Path) -> None:
    assert open_training(tmp_path) is None
    begun = begin_training(tmp_path / "training", RECORD)
    assert open_training(tmp_path / "training") == begun


def test_an_iteration_is_over_once_its_weights_are_there(tmp_path: Path) -> None:
    training = begin_training(tmp_path / "training", RECORD)
    assert training.iterations == 0 and [*training.runs(0)] == []
    for iteration in (0, 1):
        training.run_of(iteration).mkdir()
    (training.run_of(1) / "run.toml").write_text("")
    training.weights_after(0).write_bytes(b"")
    assert training.iterations == 1, "the second one is under way"
    training.weights_after(1).write_bytes(b"")
    assert training.iterations == 2
    assert [*training.runs(2)] == [training.run_of(1)], "the first run never began"


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(RunFolderError, match=r"has other files and no training.toml. Choose another folder"):
        begin_training(tmp_path, RECORD)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("text", ["version = 2", "version = 1", "no toml", 'version = 1\nprofile = "arm64"'])
def test_a_damaged_record_is_told(text: str, tmp_path: Path) -> None:
    (tmp_path / "training.toml").write_text(text)
    with pytest.raises(RunFolderError, match=r"training.toml.*Restore it from a copy, or choose another folder"):
        open_training(tmp_path)
