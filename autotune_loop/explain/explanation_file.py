"""The explanation of a run's winners in its folder, which its report shows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.autotune_loop.explain.explained import Explanation
from halide_autotune.targets.errors import RunFolderError, os_error_as
from halide_autotune.targets.process.atomic_write import write_atomically
from halide_autotune.targets.values.records import Source, record

_NAME = "explanation.json"
_MOST_BYTES = 64 * 2**20


@dataclass(frozen=True)
class _Winner:
    """Attributes:
    header_sha256: of the schedule that is explained.
    """

    argument_set: int
    header_sha256: str
    explanations: tuple[Explanation, ...]


@dataclass(frozen=True)
class _File:
    winners: tuple[_Winner, ...]


def write_explanations(folder: Path, found: Mapping[int, tuple[str, Sequence[Explanation]]]) -> Path:
    """Write the explanations of a run's winners to its folder.

    Args:
        found: argument set → the SHA-256 of its header, and what explains it on each device.

    Raises:
        RunFolderError: the folder cannot be written.
    """
    winners = [
        {"argument_set": index, "header_sha256": sha256, "explanations": [one.to_dict() for one in explanations]}
        for index, (sha256, explanations) in found.items()
    ]
    path = folder / _NAME
    with os_error_as(RunFolderError, f"{path} cannot be written"):
        write_atomically(path, json.dumps({"winners": winners}, indent=1).encode())
    return path


def read_explanations(folder: Path, header_sha256: Mapping[int, str]) -> dict[int, tuple[Explanation, ...]]:
    """What explains a run's winners, by argument set; without those of other schedules than the present ones.

    Raises:
        RunFolderError: the file is damaged.
    """
    path = folder / _NAME
    source = Source(path, RunFolderError, next_step=f"Explain the run again: sdk explain {folder}")
    try:
        text = source.read(path, most_bytes=_MOST_BYTES)
    except FileNotFoundError:
        return {}
    read = source.check(record(_File), source.json(text))
    current = [winner for winner in read.winners if header_sha256.get(winner.argument_set) == winner.header_sha256]
    return {winner.argument_set: winner.explanations for winner in current}
