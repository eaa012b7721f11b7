"""`run.toml`: the options of a run, with versions, seeds and hashes; a resumed run must match it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from targets.errors import RunFolderError
from targets.process.atomic_write import write_atomically
from targets.values.records import Source, record, toml_text

FILE_NAME = "run.toml"


@dataclass(frozen=True)
class RunRecord:
    """The options of a run.

    Attributes:
        identity: must be equal for a run to be resumed (generator, target, Halide, seeds …); flat.
        settings: may differ between the parts of one run (budgets, batch size …); flat.
    """

    identity: Mapping[str, str]
    settings: Mapping[str, str]

    def write(self, folder: Path) -> None:
        """Write `run.toml` into the run folder.

        Raises:
            RunFolderError: it cannot be written.
        """
        tables = {"identity": self.identity, "settings": self.settings}
        text = toml_text(tables, comment="The options of this run. Written once; --resume checks [identity].")
        try:
            write_atomically(folder / FILE_NAME, text.encode())
        except OSError as error:
            raise RunFolderError(f"{folder / FILE_NAME} cannot be written: {error.strerror}.") from error


def read_run_record(folder: Path) -> RunRecord:
    """Read `run.toml` of a run folder.

    Raises:
        RunFolderError: there is none, or it is damaged.
    """
    path = folder / FILE_NAME
    source = Source(f"{path} is damaged", RunFolderError, next_step="Restore it from a copy, or start a new run.")
    try:
        text = source.read(path)
    except FileNotFoundError as error:
        raise RunFolderError(
            f"{folder} is not a run folder: it has no {FILE_NAME}.", next_step="Pass the folder of a run."
        ) from error
    return source.check(record(RunRecord), source.toml(text))


def differences(old: RunRecord, new: RunRecord) -> list[str]:
    """Lines that say how the identities of two runs differ; empty if the run can be resumed."""
    keys = dict.fromkeys([*old.identity, *new.identity])
    return [
        f"  {key}: the run has {old.identity.get(key, 'nothing')}, now {new.identity.get(key, 'nothing')}"
        for key in keys
        if old.identity.get(key) != new.identity.get(key)
    ]
