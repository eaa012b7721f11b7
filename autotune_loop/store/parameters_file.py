"""`*.parameters.toml`: a set of generator parameters, as a table of `[[generators]]` in `sdk.toml` takes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.targets.errors import RunFolderError
from halide_autotune.targets.generator.reference import parse_parameters
from halide_autotune.targets.values.records import Source, record, toml_text


@dataclass(frozen=True)
class _ParametersFile:
    parameters: tuple[str, ...]


def parameters_text(values: Mapping[str, str]) -> str:
    """The text of the file."""
    return toml_text({"parameters": [f"{name}={value}" for name, value in values.items()]})


def read_parameters(path: Path) -> dict[str, str]:
    """Parameter → value.

    Raises:
        RunFolderError: the file is missing or damaged.
    """
    source = Source(path, RunFolderError, next_step="Continue the run, or tune again.")
    try:
        tables = source.toml(source.read(path))
    except FileNotFoundError as error:
        raise RunFolderError(f"{path} is missing.", next_step="Continue the run, or tune again.") from error
    return parse_parameters(source.check(record(_ParametersFile), tables).parameters)
