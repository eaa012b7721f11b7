"""Schedules of a history as a file for other people: JSON, one schedule a line."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from halide_autotune.autotune_loop.history.known_schedule import KnownSchedule
from halide_autotune.targets.errors import HistoryError, os_error_as
from halide_autotune.targets.process.atomic_write import write_atomically
from halide_autotune.targets.values.records import Source, plain, record

_FORM = {"format": "halide-autotune-history", "version": 1}
_LONGEST_LINE_BYTES = 2**24
_DIGITS = 12


def export_schedules(schedules: Iterable[KnownSchedule], file: Path, salt: str) -> int:
    """Write schedules to a file, compressed; returns how many.

    Devices get other names, the same ones for the same salt, so that their times stay apart where files are merged.
    What a user has named stays in it: generators, Funcs and variables.

    Args:
        salt: known to nobody else.

    Raises:
        HistoryError: the file cannot be written.
    """
    lines = [json.dumps(_FORM)]
    lines += (json.dumps(plain(replace(one, device=_other_name(one.device, salt)))) for one in schedules)
    with os_error_as(HistoryError, f"{file} cannot be written"):
        write_atomically(file, gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))
    return len(lines) - 1


def read_exported(file: Path) -> Iterator[KnownSchedule]:
    """The schedules of a file, each checked; the file may be anybody's.

    Raises:
        HistoryError: the file cannot be read, or is none of these.
    """
    source = Source(file, HistoryError, next_step="Ask for a new copy: `sdk history export` writes it.")
    check = record(KnownSchedule, passes_unknown=True)
    for number, line in enumerate(_lines(file, source), 1):
        found = source.json(line)
        if number == 1:
            if found != _FORM:
                raise source.refuse("the first line is not that of an exported history of this version.")
            continue
        yield Source(f"{file}, line {number}", HistoryError, source.next_step).check(check, found)


def _lines(file: Path, source: Source) -> Iterator[str]:
    with os_error_as(HistoryError, f"{file} cannot be read"):
        try:
            with gzip.open(file, "rb") as opened:
                while line := opened.readline(_LONGEST_LINE_BYTES):
                    if not line.endswith(b"\n"):
                        raise source.refuse("the file ends within a line, or has one that is too long.")
                    yield line.decode()
        except (gzip.BadGzipFile, EOFError, zlib.error, UnicodeDecodeError) as error:
            raise source.refuse(f"not an exported history ({error}).") from error


def _other_name(device: str, salt: str) -> str:
    return f"device-{hashlib.sha256(f'{salt}/{device}'.encode()).hexdigest()[:_DIGITS]}"
