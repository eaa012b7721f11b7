"""The folder of a training: what it was asked, a run for each iteration, and the weights after each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.autotune_loop.store.run_record import FILE_NAME as RUN_FILE_NAME
from halide_autotune.autotune_loop.training.training_options import TrainingOptions
from halide_autotune.targets.errors import RunFolderError, os_error_as
from halide_autotune.targets.process.atomic_write import write_atomically
from halide_autotune.targets.values.checks import exactly
from halide_autotune.targets.values.records import Source, plain, record, toml_text

_FILE_NAME = "training.toml"
_VERSION = 1


@dataclass(frozen=True)
class TrainingRecord:
    """What a training was asked, and what its times are measured with.

    Attributes:
        profile: the target profile's name.
        clock: of the devices.
        width_px, height_px: of the programs' pictures.
    """

    profile: str
    clock: str
    width_px: int
    height_px: int
    options: TrainingOptions


@dataclass(frozen=True)
class TrainingFolder:
    """A training's files. Iterations are counted from 0; one is over once the weights after it are there.

    Attributes:
        path: of the folder.
    """

    path: Path
    record: TrainingRecord

    def run_of(self, iteration: int) -> Path:
        """The folder of an iteration's run."""
        return self.path / f"iteration_{iteration + 1:03}"

    def weights_after(self, iteration: int) -> Path:
        """The weights that were trained on all iterations up to this one."""
        return self.run_of(iteration).with_suffix(".weights")

    @property
    def iterations(self) -> int:
        """How many are over."""
        count = 0
        while self.weights_after(count).is_file():
            count += 1
        return count

    def runs(self, iterations: int) -> Iterator[Path]:
        """The runs of the first so many iterations, but those that never began."""
        folders = (self.run_of(iteration) for iteration in range(iterations))
        return (folder for folder in folders if (folder / RUN_FILE_NAME).is_file())


def begin_training(path: Path, made: TrainingRecord) -> TrainingFolder:
    """Make a training's folder; it may exist, if it is empty.

    Raises:
        RunFolderError: it cannot be written, or has other files.
    """
    with os_error_as(RunFolderError, f"{path} cannot be written", next_step="Choose another folder with --run-dir."):
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise RunFolderError(
                f"{path} has other files and no {_FILE_NAME}.", next_step="Choose another folder with --run-dir."
            )
        text = toml_text({"version": _VERSION, **plain(made)}, comment="What this training was asked.")
        write_atomically(path / _FILE_NAME, text.encode())
    return TrainingFolder(path, made)


def open_training(path: Path) -> TrainingFolder | None:
    """A training that was begun; None if there is none in the folder.

    Raises:
        RunFolderError: it is damaged, or of another version.
    """
    source = Source(path / _FILE_NAME, RunFolderError, "Restore it from a copy, or choose another folder.")
    try:
        table = source.toml(source.read(path / _FILE_NAME))
    except FileNotFoundError:
        return None
    source.check(exactly(_VERSION), table.pop("version", None))
    return TrainingFolder(path, source.check(record(TrainingRecord, absent_is_none=True), table))
