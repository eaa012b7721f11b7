"""`ship.json`: what a shipped folder holds, for machines and for the next time something is shipped into it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autotune_loop.shipping.files.func_table import FuncRow
from autotune_loop.shipping.sizes.outcome import SizeOutcome, SizeVerdict
from targets.errors import RunFolderError

FILE_NAME = "ship.json"
_FORMAT = "halide-sdk-shipped"
_VERSION = 1
_MAXIMUM_BYTES = 64 * 2**20
_C_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_PLAIN_FILE_OR_NONE = re.compile(rf"(?:{_PLAIN_FILE.pattern})?")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_HASH = re.compile(r"[0-9a-f]{16}")
_TARGET = re.compile(r"[a-z0-9_-]+")


@dataclass(frozen=True)
class ShippedSchedule:
    """One schedule of one generator for one target.

    Attributes:
        name: of the generator's function; what its schedules for all targets are called by.
        function_name: the <name> of this one's `apply_schedule_<name>`.
        dispatch_target: Halide's target string with what decides whether it fits.
        header, python_module: its files.
        provenance: the facts as they stand in its constants.
        parameters: of the generator; of a path only the file's name.
        funcs: the pipeline that it was made for.
        sizes: what became of it at other sizes than its estimates; None where that was not tried.
        guard: the C header that calls another kernel at sizes that it does not take; empty where there is none.
    """

    name: str
    function_name: str
    dispatch_target: str
    header: str
    python_module: str
    provenance: Mapping[str, str | int | float | bool | None]
    parameters: Mapping[str, str]
    funcs: tuple[FuncRow, ...]
    sizes: tuple[SizeOutcome, ...] | None = None
    guard: str = ""


@dataclass(frozen=True)
class ShipManifest:
    """A shipped folder.

    Attributes:
        schedules: sorted by name and target.
        files: file name → SHA-256.
    """

    schedules: tuple[ShippedSchedule, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """A JSON-ready form; equal for equal manifests."""
        schedules = [_schedule_fields(schedule) for schedule in self.schedules]
        files = dict(sorted(self.files.items()))
        return {"format": _FORMAT, "version": _VERSION, "schedules": schedules, "files": files}

    def to_json(self) -> str:
        """The text of `ship.json`."""
        return json.dumps(self.to_dict(), indent=2) + "\n"


def _schedule_fields(schedule: ShippedSchedule) -> dict[str, object]:
    return {
        "name": schedule.name,
        "function_name": schedule.function_name,
        "dispatch_target": schedule.dispatch_target,
        "header": schedule.header,
        "python_module": schedule.python_module,
        "provenance": dict(schedule.provenance),
        "parameters": dict(schedule.parameters),
        "funcs": [[row.name, f"{row.definition:016x}", f"{row.domains:016x}"] for row in schedule.funcs],
        "sizes": None
        if schedule.sizes is None
        else [[outcome.size, outcome.verdict.value, outcome.message] for outcome in schedule.sizes],
        "guard": schedule.guard,
    }


def read_manifest(folder: Path) -> ShipManifest:
    """The manifest of a shipped folder.

    Raises:
        RunFolderError: there is none, or it is damaged; the message has the place.
    """
    path = folder / FILE_NAME
    try:
        with path.open("rb") as file:
            text = file.read(_MAXIMUM_BYTES + 1)
    except OSError as error:
        raise RunFolderError(
            f"{folder} is not a shipped folder: its {FILE_NAME} cannot be read ({error.strerror}).",
            next_step="Give the folder that `sdk ship` wrote.",
        ) from error
    try:
        data = json.loads(text) if len(text) <= _MAXIMUM_BYTES else None
        return _manifest(data)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        place = f"expected {error}" if isinstance(error, _WrongValue) else "it is not what `sdk ship` writes"
        raise RunFolderError(f"{path} is damaged: {place}.", next_step="Restore it, or ship again.") from error


class _WrongValue(ValueError):
    """The message says what was expected, and where."""


def _manifest(data: Any) -> ShipManifest:
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise _WrongValue(f"format {_FORMAT!r}")
    if data.get("version") != _VERSION:
        raise _WrongValue(f"version {_VERSION}")
    schedules = tuple(_schedule(item, f"schedules[{index}]") for index, item in enumerate(_list(data["schedules"])))
    files = {
        _text(name, _PLAIN_FILE, "the name of a file in files"): _text(sha256, _SHA256, f"a SHA-256 at files.{name}")
        for name, sha256 in _mapping(data["files"], "files").items()
    }
    return ShipManifest(schedules, files)


def _schedule(item: Any, place: str) -> ShippedSchedule:
    fields = _mapping(item, place)
    return ShippedSchedule(
        name=_text(fields["name"], _C_NAME, f"a C name at {place}.name"),
        function_name=_text(fields["function_name"], _C_NAME, f"a C name at {place}.function_name"),
        dispatch_target=_text(fields["dispatch_target"], _TARGET, f"a Halide target at {place}.dispatch_target"),
        header=_text(fields["header"], _PLAIN_FILE, f"the name of a file at {place}.header"),
        python_module=_text(fields["python_module"], _PLAIN_FILE, f"the name of a file at {place}.python_module"),
        provenance=_plain_values(fields["provenance"], f"{place}.provenance"),
        parameters={
            str(key): _text(value, None, f"text at {place}.parameters.{key}")
            for key, value in _mapping(fields["parameters"], f"{place}.parameters").items()
        },
        funcs=tuple(_row(row, f"{place}.funcs") for row in _list(fields["funcs"])),
        sizes=None
        if fields["sizes"] is None
        else tuple(_outcome(outcome, f"{place}.sizes") for outcome in _list(fields["sizes"])),
        guard=_text(fields["guard"], _PLAIN_FILE_OR_NONE, f"the name of a file at {place}.guard"),
    )


def _plain_values(value: Any, place: str) -> dict[str, str | int | float | bool | None]:
    fields = _mapping(value, place)
    for key, item in fields.items():
        if not (item is None or isinstance(item, str | int | float | bool)):
            raise _WrongValue(f"a plain value at {place}.{key}")
    return fields


def _row(value: Any, place: str) -> FuncRow:
    name, definition, domains = _list(value)
    return FuncRow(
        _text(name, None, f"text at {place}"),
        int(_text(definition, _HASH, f"a hash at {place}"), 16),
        int(_text(domains, _HASH, f"a hash at {place}"), 16),
    )


def _outcome(value: Any, place: str) -> SizeOutcome:
    size, verdict, message = _list(value)
    words = [_text(item, None, f"text at {place}") for item in (size, verdict, message)]
    return SizeOutcome(words[0], SizeVerdict(words[1]), words[2])


def _mapping(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _WrongValue(f"an object at {place}")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _WrongValue("a list")
    return value


def _text(value: Any, pattern: re.Pattern[str] | None, expected: str) -> str:
    if not isinstance(value, str) or (pattern is not None and not pattern.fullmatch(value)):
        raise _WrongValue(expected)
    return value
