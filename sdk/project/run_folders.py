"""Finding the folder of a run that is to be resumed."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from halide_autotune.autotune_loop.store.run_record import FILE_NAME, read_run_record
from halide_autotune.targets.errors import RunFolderError, UsageError
from halide_autotune.targets.generator.reference import GeneratorReference


def newest_run_folder(parent: Path, generators: Sequence[GeneratorReference], target: str | None) -> Path:
    """The run below `parent`/tuned that was begun or resumed last of those that tune some generators for a target.

    Args:
        generators: empty for any.
        target: the name of a profile; None for any.

    Raises:
        UsageError: there is none.
    """
    for folder in run_folders(parent):
        with contextlib.suppress(RunFolderError):  # a damaged one is passed over
            spec = read_run_record(folder).spec
            tuned = {(task.reference.file, task.reference.name) for task in spec.tasks}
            files = {file for file, _ in tuned}
            if target in (None, spec.profile.name) and all(
                (wanted.file, wanted.name) in tuned if wanted.name else wanted.file in files for wanted in generators
            ):
                return folder
    names = ", ".join(wanted.file.name for wanted in generators) or "anything"
    raise UsageError(
        f"--resume: there is no run of {names}{f' for {target}' if target else ''} in {parent / 'tuned'}.",
        next_step="Leave --resume out to start one, or give the folder of a run.",
    )


def run_folders(parent: Path) -> list[Path]:
    """The runs below `parent`/tuned, the newest first."""
    records = (parent / "tuned").glob(f"*/{FILE_NAME}")
    return [record.parent for record in sorted(records, key=lambda record: record.stat().st_mtime, reverse=True)]


def check_run_folder(folder: Path) -> Path:
    """`folder`, when it holds a run.

    Raises:
        UsageError: it does not.
    """
    # A folder that has lost its record is told apart where it is opened.
    if not any((folder / name).is_file() for name in (FILE_NAME, "tuning.db")):
        raise UsageError(
            f"--resume: {folder} is not a run folder: it has no {FILE_NAME}.",
            next_step="Leave --resume out to start one there.",
        )
    return folder


def latest_run_folder(parent: Path) -> Path:
    """The run below `parent`/tuned that was begun last.

    Raises:
        UsageError: there is none.
    """
    folders = run_folders(parent)
    if not folders:
        raise UsageError(f"There is no run in {parent / 'tuned'}.", next_step="Give the folder of a run.")
    return folders[0]
