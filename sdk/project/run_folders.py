"""Finding the folder of a run that is to be resumed."""

from __future__ import annotations

import re
from pathlib import Path

from autotune_loop.store.run_record import FILE_NAME
from targets.errors import UsageError


def newest_run_folder(parent: Path, name: str, target: str) -> Path:
    """The tuned/<name>-<target>-<n> below `parent` with the highest number that holds a run.

    Raises:
        UsageError: there is none.
    """
    pattern = re.compile(re.escape(f"{name}-{target}-") + r"(\d+)")
    tuned = parent / "tuned"
    found: dict[int, Path] = {}
    for folder in tuned.iterdir() if tuned.is_dir() else ():
        match = pattern.fullmatch(folder.name)
        if match and (folder / FILE_NAME).is_file():
            found[int(match[1])] = folder
    if not found:
        raise UsageError(
            f"--resume: there is no run of {name} for {target} in {tuned}.",
            next_step="Leave --resume out to start one, or give its folder with --run-dir.",
        )
    return found[max(found)]


def check_run_folder(folder: Path) -> Path:
    """`folder`, when it holds a run.

    Raises:
        UsageError: it does not.
    """
    # A folder that has lost its record is told apart where it is opened.
    if not any((folder / name).is_file() for name in (FILE_NAME, "tuning.db")):
        raise UsageError(
            f"--resume: {folder} holds no run (it has no {FILE_NAME}).",
            next_step="Leave --resume out to start one there.",
        )
    return folder


def latest_run_folder(parent: Path) -> Path:
    """The run below `parent`/tuned that was begun last.

    Raises:
        UsageError: there is none.
    """
    records = list((parent / "tuned").glob(f"*/{FILE_NAME}"))
    if not records:
        raise UsageError(f"There is no run in {parent / 'tuned'}.", next_step="Give the folder of a run.")
    return max(records, key=lambda record: record.stat().st_mtime).parent
