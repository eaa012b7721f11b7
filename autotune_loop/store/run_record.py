"""`run.toml`: everything a run was asked, with versions, seeds and hashes; what a resumed run must agree with."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from targets.errors import RunFolderError
from targets.process.atomic_write import write_atomically

FILE_NAME = "run.toml"


@dataclass(frozen=True)
class RunRecord:
    """What a run is of.

    Attributes:
        identity: what must be equal for a run to be resumed (generator, target, Halide, seeds …); flat.
        settings: what may differ between the parts of one run (budgets, batch size …); flat.
    """

    identity: Mapping[str, str]
    settings: Mapping[str, str]

    def write(self, folder: Path) -> None:
        """Write `run.toml` into the run folder.

        Raises:
            RunFolderError: it cannot be written.
        """
        lines = ["# What this run was asked. Written once; --resume checks [identity].", ""]
        for title, table in (("identity", self.identity), ("settings", self.settings)):
            lines.append(f"[{title}]")
            lines += [f"{_toml_string(key)} = {_toml_string(value)}" for key, value in table.items()]
            lines.append("")
        try:
            write_atomically(folder / FILE_NAME, "\n".join(lines).encode())
        except OSError as error:
            raise RunFolderError(f"{folder / FILE_NAME} cannot be written: {error.strerror}.") from error


def _toml_string(value: str) -> str:
    # JSON's strings are TOML's basic strings, except that TOML has no surrogates and escapes DEL. Half a surrogate
    # pair comes from a command line that is not UTF-8.
    sound = value.encode("utf-8", "backslashreplace").decode()
    return json.dumps(sound, ensure_ascii=False).replace("\x7f", "\\u007f")


def read_run_record(folder: Path) -> RunRecord:
    """Read `run.toml` of a run folder.

    Raises:
        RunFolderError: there is none, or it is damaged.
    """
    path = folder / FILE_NAME
    try:
        with path.open("rb") as file:
            tables = tomllib.load(file)
        return RunRecord(*(_flat(_table(tables, name)) for name in ("identity", "settings")))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise RunFolderError(
            f"{folder} is not a run folder: it has no {FILE_NAME}.", next_step="Give the folder of a run."
        ) from error
    except (OSError, ValueError) as error:
        raise RunFolderError(
            f"{path} is damaged: {error}.", next_step="Restore it from a copy, or start a new run folder."
        ) from error


def _table(tables: Mapping[str, object], name: str) -> Mapping[str, object]:
    table = tables.get(name)
    if not isinstance(table, dict):
        raise ValueError(f"it has no table [{name}]")
    return table


def _flat(table: Mapping[str, object]) -> dict[str, str]:
    return {str(key): str(value) for key, value in table.items()}


def differences(old: RunRecord, new: RunRecord) -> list[str]:
    """Lines that say how the identity of two runs differs; empty when a resume is right."""
    keys = dict.fromkeys([*old.identity, *new.identity])
    return [
        f"  {key}: the run has {old.identity.get(key, 'nothing')}, now {new.identity.get(key, 'nothing')}"
        for key in keys
        if old.identity.get(key) != new.identity.get(key)
    ]
