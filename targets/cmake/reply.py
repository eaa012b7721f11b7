"""What CMake's file API says of a build folder: its targets, and what one of them is made from.

The format is "codemodel" version 2 of cmake-file-api(7). The files are those of a build folder, and checked like all
input; a key that another version adds is passed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

from halide_autotune.targets.errors import ToolchainError
from halide_autotune.targets.values.checks import matching
from halide_autotune.targets.values.records import Source, record

T = TypeVar("T")

EXECUTABLE = "EXECUTABLE"
_FILE_API = Path(".cmake") / "api" / "v1"
_KIND, _MAJOR = "codemodel", 2
_MOST_BYTES = 64 * 2**20
_AGAIN = "Run CMake again: cmake {folder}"
_file_name = matching(r"[A-Za-z0-9_+-][A-Za-z0-9_.+-]*\.json", "the name of a JSON file")


@dataclass(frozen=True)
class _Version:
    major: int


@dataclass(frozen=True)
class _Object:
    kind: str
    version: _Version
    jsonFile: Annotated[str, _file_name]


@dataclass(frozen=True)
class _Index:
    objects: tuple[_Object, ...]


@dataclass(frozen=True)
class TargetEntry:
    """A target as the list of a configuration has it."""

    name: str
    id: str
    jsonFile: Annotated[str, _file_name]


@dataclass(frozen=True)
class _Configuration:
    name: str
    targets: tuple[TargetEntry, ...]


@dataclass(frozen=True)
class _Folders:
    source: str
    build: str


@dataclass(frozen=True)
class _Codemodel:
    paths: _Folders
    configurations: tuple[_Configuration, ...]


@dataclass(frozen=True)
class TargetSource:
    """A file of a target; its path is relative to the project's source folder, or absolute."""

    path: str
    compileGroupIndex: int | None = None
    isGenerated: bool = False


@dataclass(frozen=True)
class _Fragment:
    fragment: str
    role: str = ""


@dataclass(frozen=True)
class _Include:
    path: str
    isSystem: bool = False


@dataclass(frozen=True)
class _Define:
    define: str


@dataclass(frozen=True)
class _Standard:
    standard: str


@dataclass(frozen=True)
class CompileGroup:
    """How some sources of a target are compiled, all alike."""

    language: str
    compileCommandFragments: tuple[_Fragment, ...] = ()
    includes: tuple[_Include, ...] = ()
    defines: tuple[_Define, ...] = ()
    languageStandard: _Standard | None = None


@dataclass(frozen=True)
class _Link:
    commandFragments: tuple[_Fragment, ...] = ()


@dataclass(frozen=True)
class _Dependency:
    id: str


@dataclass(frozen=True)
class _Artifact:
    path: str


@dataclass(frozen=True)
class CMakeTarget:
    """One target; the names of its fields are those of the file API."""

    name: str
    type: str
    paths: _Folders
    sources: tuple[TargetSource, ...] = ()
    compileGroups: tuple[CompileGroup, ...] = ()
    link: _Link = _Link()
    dependencies: tuple[_Dependency, ...] = ()
    artifacts: tuple[_Artifact, ...] = ()


@dataclass(frozen=True)
class CMakeReply:
    """The newest reply of a build folder, for one configuration.

    Attributes:
        folder: the build folder.
        source_folder: of the project.
        configuration: its name, such as Release; may be empty.
        targets: of the project, in CMake's order.
    """

    folder: Path
    source_folder: Path
    configuration: str
    targets: tuple[TargetEntry, ...]

    def target(self, entry: TargetEntry) -> CMakeTarget:
        """Return what a target is made from.

        Raises:
            ToolchainError: its file is missing or damaged.
        """
        return _read(self.folder, entry.jsonFile, CMakeTarget)


def write_query(folder: Path) -> None:
    """Ask the next CMake that runs in a build folder for what `read_reply` reads.

    Raises:
        OSError: the folder cannot be written.
    """
    query = folder / _FILE_API / "query" / "client-halide-autotune" / f"{_KIND}-v{_MAJOR}"
    query.parent.mkdir(parents=True, exist_ok=True)
    query.touch()


def read_reply(folder: Path) -> CMakeReply:
    """Return CMake's newest reply; of several configurations that of Release, else the first.

    Raises:
        ToolchainError: there is none, or it is damaged.
    """
    # CMake names the index by the time, and removes older ones.
    indexes = sorted((folder / _FILE_API / "reply").glob("index-*.json"))
    index = _read(folder, indexes[-1].name, _Index) if indexes else _Index(())
    models = [each for each in index.objects if (each.kind, each.version.major) == (_KIND, _MAJOR)]
    if not models:
        raise ToolchainError(
            f"{folder} has no reply of CMake's file API, which CMake 3.14 and newer write.",
            next_step=_AGAIN.format(folder=folder),
        )
    model = _read(folder, models[0].jsonFile, _Codemodel)
    if not model.configurations:
        raise ToolchainError(f"{folder}: CMake lists no configuration.", next_step=_AGAIN.format(folder=folder))
    chosen = next((each for each in model.configurations if each.name == "Release"), model.configurations[0])
    return CMakeReply(folder, Path(model.paths.source), chosen.name, chosen.targets)


def _read(folder: Path, name: str, kind: type[T]) -> T:
    file = folder / _FILE_API / "reply" / name
    source = Source(file, ToolchainError, next_step=_AGAIN.format(folder=folder))
    try:
        text = source.read(file, most_bytes=_MOST_BYTES)
    except FileNotFoundError as error:
        raise source.refuse("the file is missing.") from error
    return source.check(record(kind, passes_unknown=True), source.json(text))
