"""`generators` of `sdk.toml`: a table of names, or `[[generators]]` with what is each one's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from targets.errors import UsageError

_KEYS = ("name", "generator", "parameters", "argument_sets", "function_name", "incumbent")


@dataclass(frozen=True)
class ProjectGenerator:
    """One generator of a project; its paths are relative to the project's folder.

    Attributes:
        generator: GENERATOR.
        parameters: each `key=value`.
        argument_sets: as --generator-arg-sets; None for none.
        function_name, incumbent: as the options of these names; None for none.
    """

    generator: str
    parameters: tuple[str, ...] = ()
    argument_sets: str | None = None
    function_name: str | None = None
    incumbent: str | None = None


def read_generators(path: Path, value: dict[str, object] | list[object]) -> dict[str, ProjectGenerator]:
    """Name → generator.

    Args:
        path: the project's file, for errors.
        value: what it has under `generators`.

    Raises:
        UsageError: an unknown key, a value of a wrong type, or a name that is there twice.
    """
    generators: dict[str, ProjectGenerator] = {}
    if isinstance(value, dict):
        for name, text in value.items():
            if not isinstance(text, str):
                raise UsageError(f"{path}: generators.{name} must be a string such as 'blur.py:blur'.")
            generators[name] = ProjectGenerator(text)
        return generators
    for number, table in enumerate(value, start=1):
        place = f"{path}: [[generators]] number {number}"
        texts, parameters = _checked(place, table)
        name = texts.get("name", texts["generator"])
        if name in generators:
            raise UsageError(f"{place}: the name {name!r} is there twice.", next_step="Give each a name of its own.")
        generators[name] = ProjectGenerator(
            generator=texts["generator"],
            parameters=parameters,
            argument_sets=texts.get("argument_sets"),
            function_name=texts.get("function_name"),
            incumbent=texts.get("incumbent"),
        )
    return generators


def _checked(place: str, table: object) -> tuple[dict[str, str], tuple[str, ...]]:
    """The table's strings, and its parameters."""
    if not isinstance(table, dict):
        raise UsageError(f"{place} must be a table.")
    texts: dict[str, str] = {}
    parameters: tuple[str, ...] = ()
    for key, value in table.items():
        if key not in _KEYS:
            raise UsageError(f"{place}: unknown key {key!r}; known are {', '.join(_KEYS)}.")
        if key == "parameters":
            if not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
                raise UsageError(f"{place}: parameters must be a list such as ['radius=3'].")
            parameters = tuple(value)
        elif isinstance(value, str):
            texts[key] = value
        else:
            raise UsageError(f"{place}: {key} must be a string.")
    if "generator" not in texts:
        raise UsageError(f"{place} must have a generator, such as 'blur.py:blur'.")
    return texts, parameters
