"""`sdk.toml`: the generators, default target and budget of a project."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sdk.project.generators import ProjectGenerator, read_generators
from targets.errors import UsageError

FILE_NAME = "sdk.toml"
_KEYS: dict[str, type | tuple[type, ...]] = {
    "default_generator": str,
    "default_target": str,
    "budget": str,
    "inventory": str,
    "generators": (dict, list),
    "farm": dict,
}


@dataclass(frozen=True)
class Project:
    """What a project's `sdk.toml` says.

    Attributes:
        folder: where the file lies; its paths are relative to it.
        default_generator: a name of `generators`, or a GENERATOR; None when the file names none.
        generators: name → generator, of `[generators]` or `[[generators]]`.
        tunes_all: they are `[[generators]]`, which one run tunes together when none is named.
        default_target, budget: used where the command line gives none.
        inventory: the path of the devices' file; None when the file names none.
        scheduler: the address of the farm, `[farm] scheduler`; None when the file names none.
    """

    folder: Path
    default_generator: str | None = None
    default_target: str | None = None
    budget: str | None = None
    inventory: str | None = None
    scheduler: str | None = None
    generators: dict[str, ProjectGenerator] = field(default_factory=dict)
    tunes_all: bool = False

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
            return str(self.folder / self.generators[wanted].generator)
        return wanted if generator else str(self.folder / wanted)

    def resolve_all(self, generators: Sequence[str]) -> list[ProjectGenerator]:
        """What one run tunes, with whole paths: those that are given, else the default, else all `[[generators]]`.

        Raises:
            UsageError: none was given, and the project names none.
        """
        names = list(generators)
        if not names and self.default_generator is None and self.tunes_all:
            names = list(self.generators)
        if names:
            return [self._whole(name, self.resolve(name)) for name in names]
        return [self._whole(self.default_generator or "", self.resolve(None))]

    def _whole(self, name: str, path: str) -> ProjectGenerator:
        entry = self.generators.get(name, ProjectGenerator(path))
        incumbent = None if entry.incumbent is None else str(self.folder / entry.incumbent)
        return replace(entry, generator=path, incumbent=incumbent)


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
            raise UsageError(f"{path}: {key} must be a {'string' if _KEYS[key] is str else 'table'}.")
    generators = table.get("generators", {})
    farm = table.get("farm", {})
    if not set(farm) <= {"scheduler"} or not isinstance(farm.get("scheduler", ""), str):
        raise UsageError(f"{path}: [farm] has one key: scheduler, an address such as 'tls://lab.example:8786'.")
    return Project(
        folder=path.parent,
        default_generator=table.get("default_generator"),
        default_target=table.get("default_target"),
        budget=table.get("budget"),
        inventory=table.get("inventory"),
        scheduler=farm.get("scheduler"),
        generators=read_generators(path, generators),
        tunes_all=isinstance(generators, list),
    )
