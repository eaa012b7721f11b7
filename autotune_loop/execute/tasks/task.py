"""What an executor carries out: frozen records that say what they read and where their files belong."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, TypeVar

import msgspec

from halide_autotune.autotune_loop.execute.worker_state import WorkerState
from halide_autotune.targets.errors import FarmError, os_error_as
from halide_autotune.targets.process.content_cache import file_sha256

R_co = TypeVar("R_co", covariant=True)

_ODD = re.compile(r"[^A-Za-z0-9_.+-]", re.ASCII)


@dataclass(frozen=True)
class FileKey:
    """A file by its content, whichever machine it lies on.

    Attributes:
        name: its file name, odd characters replaced.
        sha256: of its content, hexadecimal.
    """

    name: str
    sha256: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]


def key_of(path: Path) -> FileKey:
    """Read a local file's key.

    Raises:
        FarmError: it cannot be read.
    """
    with os_error_as(FarmError, f"Cannot read {path}"):
        return FileKey(_ODD.sub("_", path.name).lstrip(".-") or "file", file_sha256(path))


class Task(ABC, Generic[R_co]):
    """One piece of work for a run.

    Its paths are those of the machine where the run began. On another machine they are replaced as the task arrives:
    each is one of `inputs()`, or lies in `output_folder`.

    Attributes:
        kind: what messages and people call it.
        kinds: every kind that this process knows.
    """

    kind: ClassVar[str]
    kinds: ClassVar[dict[str, type[Task[Any]]]] = {}

    def __init_subclass__(cls, kind: str = "") -> None:
        super().__init_subclass__()
        if kind:
            cls.kind = kind
            Task.kinds[kind] = cls

    def inputs(self) -> dict[Path, FileKey]:
        """Return the files that it reads.

        Raises:
            FarmError: one cannot be read.
        """
        return {}

    @abstractmethod
    def run(self, state: WorkerState) -> R_co:
        """Do the work with what is open for the run. An expected failure is a result."""


@dataclass(frozen=True)
class BuildTask(Task[R_co]):
    """Work for a build slot.

    Attributes:
        output_folder: where the files that it makes belong.
        runs_here: it is cheaper than sending what it reads, and never leaves this machine.
    """

    runs_here: ClassVar[bool] = False

    output_folder: Path


@dataclass(frozen=True)
class MeasureTask(Task[R_co]):
    """Work for one device.

    Attributes:
        is_brief: it says nothing about how long a measurement takes.
    """

    is_brief: ClassVar[bool] = False

    device_name: str
