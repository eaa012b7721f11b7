"""Schedules of a history as a file for other people, or as a farm sends them: JSON, one schedule a line."""

from __future__ import annotations

import base64
import binascii
import gzip
import hashlib
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from halide_autotune.autotune_loop.history.known_schedule import KnownSchedule, NestKey
from halide_autotune.autotune_loop.schedule.as_json import parse_json
from halide_autotune.targets.errors import GeneratorError, HistoryError, os_error_as
from halide_autotune.targets.process.atomic_write import write_atomically
from halide_autotune.targets.values.records import Source, plain, record

_FORM = {"format": "halide-autotune-history", "version": 1}
_LONGEST_LINE_BYTES, _LARGEST_BYTES = 2**24, 2**30
_LONGEST_NEST_BYTES = 2**22
_DAY_S = 86_400
_NEST = "nest"
Nests = Mapping[NestKey, bytes]
_OTHER_NAME = re.compile("device-[0-9a-f]{12}")


@dataclass(frozen=True)
class ExportedSchedule:
    """A schedule of somebody's file.

    Attributes:
        nest: the content of its `.lowered` file, unchecked; empty if it was not lowered.
    """

    schedule: KnownSchedule
    nest: bytes = b""


def export_schedules(schedules: Iterable[KnownSchedule], nests: Nests, file: Path, salt: str) -> int:
    """Write schedules to a file, compressed; returns how many.

    Devices get other names, the same ones for the same salt, so that their times stay apart where files are merged;
    of moments only the day stays. What a user has named is in it: generators, Funcs, variables, inputs, and techniques
    of packages.

    Args:
        nests: as `pack_schedules` takes them.
        salt: known to nobody else.

    Raises:
        HistoryError: the file cannot be written.
    """
    told = [
        replace(one, device=_other_name(one.device, salt), at_unix_s=one.at_unix_s // _DAY_S * _DAY_S)
        for one in schedules
    ]
    with os_error_as(HistoryError, f"{file} cannot be written"):
        write_atomically(file, pack_schedules(told, nests))
    return len(told)


def pack_schedules(schedules: Iterable[KnownSchedule], nests: Nests) -> bytes:
    """The content of such a file, with all as it is; equal schedules give equal bytes.

    Args:
        nests: the contents of `.lowered` files.
    """
    lines = [json.dumps(_FORM)]
    for one in schedules:
        told = plain(one)
        nest = nests.get(one.nest_key)
        if nest is not None:
            told[_NEST] = base64.b64encode(nest).decode()
        lines.append(json.dumps(told))
    return gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)


def read_exported(file: Path, own_devices: Iterable[str] = (), salt: str = "") -> Iterator[ExportedSchedule]:
    """The schedules of a file, each checked; the file may be anybody's.

    Args:
        own_devices: the names of the reader's devices; what the reader has exported itself gets them back.
        salt: the reader's.

    Raises:
        HistoryError: the file cannot be read, or is none of these.
    """
    own_names = {_other_name(device, salt): device for device in own_devices}
    with os_error_as(HistoryError, f"{file} cannot be read"), file.open("rb") as opened:
        for one in unpack_schedules(opened, str(file)):
            device = one.schedule.device
            yield replace(one, schedule=replace(one.schedule, device=own_names.get(device, device)))


def unpack_schedules(packed: BinaryIO, name: str) -> Iterator[ExportedSchedule]:
    """What `pack_schedules` has packed, or anybody else, each checked.

    Args:
        name: starts messages.

    Raises:
        HistoryError: it is none of these.
    """
    next_step = "Ask for a new copy: `sdk history export` writes it."
    lines = _lines(packed, Source(name, HistoryError, next_step))
    if (first := next(lines, None)) is None or Source(name, HistoryError, next_step).json(first) != _FORM:
        raise HistoryError(f"{name} is not an exported history of this version.", next_step=next_step)
    check = record(KnownSchedule, passes_unknown=True)
    for number, line in enumerate(lines, 2):
        source = Source(f"{name}, line {number}", HistoryError, next_step)
        table: Any = source.json(line)
        found = source.check(check, table)
        try:
            parse_json(found.schedule.encode().decode())
        except (GeneratorError, UnicodeEncodeError) as error:
            raise source.refuse(f"its schedule is damaged ({error}).") from error
        yield ExportedSchedule(found, _nest(table.get(_NEST, ""), source))


def taken_apart(found: Iterable[ExportedSchedule]) -> tuple[list[KnownSchedule], Nests]:
    """What was read, as `History.add` and `pack_schedules` take it."""
    several = [*found]
    nests = {one.schedule.nest_key: one.nest for one in several if one.nest}
    return [one.schedule for one in several], nests


def _nest(told: object, source: Source) -> bytes:
    try:
        nest = base64.b64decode(told.encode("ascii"), validate=True) if isinstance(told, str) else None
    except (binascii.Error, UnicodeEncodeError):
        nest = None
    if nest is None or len(nest) > _LONGEST_NEST_BYTES:
        raise source.refuse("its loop nest is damaged.")
    return nest


def _lines(packed: BinaryIO, source: Source) -> Iterator[str]:
    size_bytes = 0
    try:
        with gzip.open(packed, "rb") as opened:
            while line := opened.readline(_LONGEST_LINE_BYTES):
                size_bytes += len(line)
                if not line.endswith(b"\n") or size_bytes > _LARGEST_BYTES:
                    raise source.refuse("the file ends within a line, or is too large.")
                yield line.decode()
    except (gzip.BadGzipFile, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise source.refuse(f"not an exported history ({error}).") from error


def _other_name(device: str, salt: str) -> str:
    """What was merged has another name already."""
    if _OTHER_NAME.fullmatch(device):
        return device
    return f"device-{hashlib.sha256(f'{salt}/{device}'.encode()).hexdigest()[:12]}"
