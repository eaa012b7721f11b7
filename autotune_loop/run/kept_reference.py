"""Which schedule is the reference of an argument set. A run's times are multiples of its time, so it stays the same."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from halide_autotune.autotune_loop.execute.tasks.build_tasks import BuiltReference, reference_title
from halide_autotune.targets.errors import RunFolderError, os_error_as
from halide_autotune.targets.process.atomic_write import write_atomically
from halide_autotune.targets.values.checks import whole_number
from halide_autotune.targets.values.records import Source, plain, record

_NEXT_STEP = "Restore it from a copy, or start a new run."


@dataclass(frozen=True)
class KeptReference:
    """What a run folder says of a reference.

    Attributes:
        autoscheduler: whose schedule it is.
        position: its place among those that may be the reference.
    """

    autoscheduler: str
    position: Annotated[int, whole_number(0)]

    def check(self, built: BuiltReference, trouble: str) -> None:
        """Return where another process has built the same reference.

        Args:
            trouble: what has kept others from being it, for the message.

        Raises:
            RunFolderError: it is another one.
        """
        if built.autoscheduler != self.autoscheduler:
            raise RunFolderError(
                f"The times of this run are multiples of that of {reference_title(self.autoscheduler)}, which cannot be"
                f" the reference now: {built.title} would be.{trouble}",
                next_step="Resume it with a longer --budget and on a quieter machine, or start a new run.",
            )


def read_kept_reference(samples: Path, task_index: int) -> KeptReference | None:
    """The reference of an argument set; None in a new run, or one of an earlier version.

    Raises:
        RunFolderError: the file is damaged.
    """
    path = _path(samples, task_index)
    source = Source(path, RunFolderError, _NEXT_STEP)
    try:
        text = source.read(path)
    except FileNotFoundError:
        return None
    return source.check(record(KeptReference), source.json(text))


def keep_reference(samples: Path, task_index: int, built: BuiltReference) -> None:
    """Say for resumed runs which schedule is the reference.

    Raises:
        RunFolderError: the folder cannot be written.
    """
    path = _path(samples, task_index)
    with os_error_as(RunFolderError, f"{path} cannot be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(plain(KeptReference(built.autoscheduler, built.position))).encode())


def _path(samples: Path, task_index: int) -> Path:
    return samples / "reference" / str(task_index) / "reference.json"
