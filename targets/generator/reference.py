"""Parse GENERATOR: `path.py[:name]`, `path.cpp[:name]` or a built `path.generator[:name]`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

from halide_autotune.targets.errors import GeneratorError, UsageError
from halide_autotune.targets.toolchain.cpp_build import CppBuild
from halide_autotune.targets.toolchain.generator_text import registered_generators
from halide_autotune.targets.values.checks import nearest
from halide_autotune.targets.values.options import differing_options

_CPP_SUFFIXES = (".cpp", ".cc", ".cxx")
_RESERVED = ("target", "autoscheduler")


class GeneratorKind(Enum):
    """How a generator is run."""

    PYTHON = "python"
    CPP = "cpp"
    EXECUTABLE = "executable"


@dataclass(frozen=True)
class GeneratorReference:
    """One generator of one file, with its parameters.

    Attributes:
        file: absolute path of the source or executable.
        kind: how it is run.
        name: the registered name; None takes the only one of the file, whatever further sources register.
        parameters: generator parameters by name, without target and autoscheduler.
        build: what else a C++ generator is made from.
    """

    file: Path
    kind: GeneratorKind
    name: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    build: CppBuild = field(default_factory=CppBuild)


def parse_generator(text: str, parameters: Iterable[str] = (), build: CppBuild | None = None) -> GeneratorReference:
    """Parse GENERATOR and its `-p key=value` parameters.

    Raises:
        GeneratorError: the file is missing, or its kind is unknown.
        UsageError: a parameter is not `key=value`, or the SDK sets it; or `build` is for a generator that is not built.
    """
    build = build or CppBuild()
    path_text, name = text, None
    if not Path(text).exists() and ":" in text:
        path_text, _, name = text.rpartition(":")
    path = Path(path_text)
    if not path.is_file():
        raise GeneratorError(
            f"There is no generator file {path_text}.",
            next_step="Give a path such as blur.py, blur.cpp:blur or bin/blur.generator.",
        )
    kind = _kind(path)
    if kind is not GeneratorKind.CPP and (given := differing_options(build.of_any_kind(), build)):
        raise UsageError(
            f"{given[0].label} is for a generator that is built from C++, not for {path}.", next_step="Leave it out."
        )
    return GeneratorReference(path.resolve(), kind, name or None, parse_parameters(parameters), build)


def _kind(path: Path) -> GeneratorKind:
    if path.suffix == ".py":
        return GeneratorKind.PYTHON
    if path.suffix in _CPP_SUFFIXES:
        return GeneratorKind.CPP
    if os.access(path, os.X_OK):
        return GeneratorKind.EXECUTABLE
    raise GeneratorError(
        f"{path} is not a generator: expected a Python file (.py), a C++ source (.cpp) or a built executable.",
        next_step=f"If it is an executable, run: chmod +x {path}",
    )


def parse_parameters(items: Iterable[str]) -> dict[str, str]:
    """Parse `["radius=3", …]` into a mapping.

    Raises:
        UsageError: an item is not `key=value`, or the SDK sets it.
    """
    parameters: dict[str, str] = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise UsageError(f"Generator parameter {item!r} must have the form key=value, such as -p radius=3.")
        if not value or "=" in value:
            # Halide's main refuses such an argument and prints its usage.
            raise UsageError(f"Generator parameter {item!r} must have a value without '='.")
        if key in _RESERVED or key.startswith("autoscheduler."):
            raise UsageError(
                f"Generator parameter {key!r} is set by the SDK.",
                next_step="Use --target, or a profile's [autoscheduler] table.",
            )
        parameters[key] = value
    return parameters


def unqualified(function_name: str) -> str:
    """A function's name without its namespaces: what files and C symbols are called by."""
    return function_name.rpartition("::")[2]


def _own_generators(reference: GeneratorReference) -> tuple[str, ...]:
    """Those that a C++ generator's own file registers; others come with further sources."""
    if reference.kind is not GeneratorKind.CPP:
        return ()
    return registered_generators(reference.file.read_text(errors="replace"))


def resolve_name(reference: GeneratorReference, names: Sequence[str]) -> GeneratorReference:
    """Return the reference with its name, checked against the names that the file registers.

    Raises:
        GeneratorError: the name is not registered, or the file registers several and none is chosen.
    """
    listed = ", ".join(names)
    if reference.name is None:
        own = _own_generators(reference)
        if len(own) == 1 and own[0] in names:
            return replace(reference, name=own[0])
        if len(names) > 1:
            raise GeneratorError(
                f"{reference.file} registers {len(names)} generators: {listed}.",
                next_step=f"Choose one, such as {reference.file.name}:{names[0]}",
            )
        return replace(reference, name=names[0])
    if reference.name not in names:
        close = nearest(reference.name, names)
        raise GeneratorError(
            f"{reference.file} registers no generator {reference.name!r}, only: {listed}.",
            next_step=f"Did you mean {reference.file.name}:{close}?" if close else "",
        )
    return reference
