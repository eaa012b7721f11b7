"""`sdk.toml`: the generators, default target and budget of a project."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from halide_autotune.autotune_loop.parameters.tuned_parameter import parse_tune
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.toolchain.cpp_build import CppBuild
from halide_autotune.targets.values.checks import Unfit, any_text, list_of, plain_value, shown, table_of
from halide_autotune.targets.values.options import with_whole_paths
from halide_autotune.targets.values.records import Example, Source, record

FILE_NAME = "sdk.toml"


def _values(value: object) -> str:
    """The values of a tuned parameter: a text, or a list."""
    if not isinstance(value, list):
        return any_text(value)
    items = list_of(plain_value)(value)
    return ",".join(str(item).lower() if isinstance(item, bool) else str(item) for item in items)


def _tune(value: object) -> dict[str, str]:
    texts = table_of(_values)(value)
    parse_tune(f"{name}={text}" for name, text in texts.items())
    return texts


@dataclass(frozen=True)
class ProjectGenerator:
    """One generator of a project, a table of `[[generators]]`; its paths are relative to the project's folder.

    Attributes:
        generator: GENERATOR.
        name: what it is called by; None takes `generator`.
        parameters: each `key=value`.
        argument_sets: as --generator-arg-sets; None for none.
        function_name, incumbent: as the options of these names; None for none.
        build: what else a C++ generator is made from.
        tune, restrict, search_too: as the options of these names; a list of values may be a list.
        estimates: argument → size or value to tune for.
        default_estimates: as the option.
    """

    generator: Annotated[str, any_text, Example("a generator such as 'blur.py:blur'")]
    name: str | None = None
    parameters: tuple[str, ...] = ()
    argument_sets: str | None = None
    function_name: str | None = None
    incumbent: str | None = None
    build: CppBuild = field(default_factory=CppBuild)
    tune: Annotated[Mapping[str, str], _tune, Example("a table such as { tile = '16..512:x2' }")] = field(
        default_factory=dict
    )
    restrict: tuple[str, ...] = ()
    search_too: bool = False
    estimates: Mapping[str, str] = field(default_factory=dict)
    default_estimates: bool = False


def _generators(value: object) -> dict[str, ProjectGenerator]:
    """`[generators]`, with a GENERATOR for each name, or `[[generators]]`."""
    if not isinstance(value, list):
        return {name: ProjectGenerator(text) for name, text in table_of(any_text)(value).items()}
    listed: dict[str, ProjectGenerator] = {}
    for entry in list_of(record(ProjectGenerator))(value):
        name = entry.name or entry.generator
        if name in listed:
            raise Unfit(f"a list of generators with a name of its own for each; {shown(name)} is there twice")
        listed[name] = entry
    return listed


@dataclass(frozen=True)
class _Farm:
    scheduler: str | None = None


@dataclass(frozen=True)
class _ProjectFile:
    default_generator: str | None = None
    default_target: str | None = None
    budget: str | None = None
    inventory: str | None = None
    generators: Annotated[Mapping[str, ProjectGenerator], _generators] = field(default_factory=dict)
    farm: _Farm = field(default_factory=_Farm)
    autotune: Mapping[str, object] = field(default_factory=dict)
    target: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Project(_ProjectFile):
    """What a project's `sdk.toml` says.

    Attributes:
        folder: where the file lies; its paths are relative to it.
        default_generator: a name of `generators`, or a GENERATOR; None when the file names none.
        default_target, budget: used where the command line gives none.
        inventory: the path of the devices' file; None when the file names none.
        generators: name → generator, of `[generators]` or `[[generators]]`.
        tunes_all: they are `[[generators]]`, which one run tunes together when none is named.
        autotune: options of `sdk autotune`, `[autotune]`, not checked yet.
        target: profile → options that replace these where it is the target, `[target.PROFILE]`, not checked yet.
    """

    folder: Path
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
            entry = self.generators[wanted]
            # With CMake it is the name of a target.
            return entry.generator if entry.build.cmake else str(self.folder / entry.generator)
        return wanted if generator else str(self.folder / wanted)

    def named(self, generator: str | None) -> ProjectGenerator:
        """What a command works on, with whole paths: what is given, else the project's default.

        Raises:
            UsageError: none was given and the project names no default.
        """
        return self._whole(generator or self.default_generator or "", self.resolve(generator))

    def resolve_all(self, generators: Sequence[str]) -> list[ProjectGenerator]:
        """What one run tunes, with whole paths: those that are given, else the default, else all `[[generators]]`.

        Raises:
            UsageError: none was given, and the project names none.
        """
        names = list(generators)
        if not names and self.default_generator is None and self.tunes_all:
            names = list(self.generators)
        if names:
            return [self.named(name) for name in names]
        return [self.named(None)]

    def _whole(self, name: str, path: str) -> ProjectGenerator:
        entry = self.generators.get(name, ProjectGenerator(path))
        incumbent = None if entry.incumbent is None else str(self.folder / entry.incumbent)
        return replace(entry, generator=path, incumbent=incumbent, build=with_whole_paths(entry.build, self.folder))


def find_project(start: Path) -> Project:
    """The project of a folder: the nearest `sdk.toml` in it or a parent; an empty one when there is none.

    Raises:
        UsageError: the file is not TOML, or has an unknown key or a value of a wrong type.
    """
    for folder in (start, *start.parents):
        path = folder / FILE_NAME
        if path.is_file():
            return _read(path)
    return Project(folder=start)


def _read(path: Path) -> Project:
    source = Source(path, UsageError, next_step="Correct the file or move it away.")
    tables = source.toml(source.read(path))
    told = source.check(record(_ProjectFile), tables)
    return Project(folder=path.parent, tunes_all=isinstance(tables.get("generators"), list), **vars(told))
