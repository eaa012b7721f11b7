"""`sdk.toml`: the generators, default target and budget of a project."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from targets.errors import UsageError

FILE_NAME = "sdk.toml"
_KEYS = {"default_generator": str, "default_target": str, "budget": str, "inventory": str, "generators": dict}


@dataclass(frozen=True)
class Project:
    """What a project's `sdk.toml` says.

    Attributes:
        folder: where the file lies; its paths are relative to it.
        default_generator: a name of `generators`, or a GENERATOR; None when the file names none.
        generators: name → GENERATOR.
        default_target, budget: used where the command line gives none.
        inventory: the path of the devices' file; None when the file names none.
    """

    folder: Path
    default_generator: str | None = None
    default_target: str | None = None
    budget: str | None = None
    inventory: str | None = None
    generators: dict[str, str] = field(default_factory=dict)

    def resolve(self, generator: str | None) -> str:
        """GENERATOR as a path: a name of this project's, a path, or the project's default.

        Raises:
            UsageError: none was given and the project names no default.
        """
        wanted = generator or self.default_generator
        if wanted is None:
            names = f" Its generators: {', '.join(self.generators)}." if self.generators else ""
            raise UsageError(
                f"No GENERATOR was given, and no default_generator is in {self.folder / FILE_NAME}.{names}",
                next_step="Give one, such as blur.py or blur.cpp:blur.",
            )
        if wanted in self.generators:
            return str(self.folder / self.generators[wanted])
        return wanted if generator else str(self.folder / wanted)


def find_project(start: Path) -> Project:
    """The project of a folder: the nearest `sdk.toml` in it or a parent; an empty one when there is none.

    Raises:
        UsageError: the file is not TOML, or has an unknown key or a value of a wrong type.
    """
    for folder in (start, *start.parents):
        path = folder / FILE_NAME
        if path.is_file():
            return _read(path)
    return Project(start)


def _read(path: Path) -> Project:
    try:
        with path.open("rb") as file:
            table = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}.", next_step="Mend the file or move it away.") from error
    for key, value in table.items():
        if key not in _KEYS:
            raise UsageError(f"{path}: unknown key {key!r}; known are {', '.join(_KEYS)}.")
        if not isinstance(value, _KEYS[key]):
            raise UsageError(f"{path}: {key} must be a {'table' if _KEYS[key] is dict else 'string'}.")
    generators = table.get("generators", {})
    for name, text in generators.items():
        if not isinstance(text, str):
            raise UsageError(f"{path}: generators.{name} must be a string such as 'blur.py:blur'.")
    return Project(
        folder=path.parent,
        default_generator=table.get("default_generator"),
        default_target=table.get("default_target"),
        budget=table.get("budget"),
        inventory=table.get("inventory"),
        generators=generators,
    )
