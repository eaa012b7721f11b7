"""The generator parameters that a generator declares, with their types and defaults."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from halide_autotune.targets.errors import UsageError

_STRUCT = re.compile(
    r"^\s*struct GeneratorParams final \{\n(?P<body>.*?)^\s*GeneratorParams\(", re.MULTILINE | re.DOTALL
)
_FIELD = re.compile(r"^\s*(?P<type>[\w:]+) (?P<name>\w+)\{ (?P<default>.*) \};$", re.MULTILINE)
_ENUM = re.compile(r"const std::map<(?P<type>\w+), std::string>& \w+\(\) \{(?P<body>.*?)^\};", re.MULTILINE | re.DOTALL)
_MEMBER = re.compile(r'\{ (?P<member>[\w:]+), "(?P<name>[^"\n]*)"\}')
_INTEGER = re.compile(r"(u?)int(8|16|32|64)_t")
_TYPE = re.compile(r"Halide::(B?Float|U?Int)\((\d+)\)")
_BOOLEANS = ("true", "false")


class ParameterKind(Enum):
    """What a generator parameter takes."""

    INTEGER = "a whole number"
    NUMBER = "a number"
    BOOLEAN = "true or false"
    CHOICE = "one of its names"
    TEXT = "a text"


@dataclass(frozen=True)
class DeclaredParameter:
    """A generator parameter.

    Attributes:
        default: as one writes it after `-p name=`.
        choices: the names that it takes; empty if it takes others.
    """

    kind: ParameterKind
    default: str
    choices: tuple[str, ...] = ()

    def check(self, name: str, value: str) -> None:
        """Check a value as far as its type says.

        Raises:
            UsageError: the generator would refuse it.
        """
        if self.choices and value not in self.choices:
            raise UsageError(
                f"The generator parameter {name} cannot be {value}.", next_step=f"It takes {', '.join(self.choices)}."
            )
        number = {ParameterKind.INTEGER: int, ParameterKind.NUMBER: float}.get(self.kind)
        try:
            if number is not None:
                number(value)
        except ValueError as error:
            raise UsageError(f"The generator parameter {name} takes {self.kind.value}, not {value}.") from error


def parameters_of_stub(text: str) -> dict[str, DeclaredParameter]:
    """What a stub declares, as Halide's `-e cpp_stub` prints it of a C++ generator."""
    names = {
        enum["type"]: {found["member"]: found["name"] for found in _MEMBER.finditer(enum["body"])}
        for enum in _ENUM.finditer(text)
    }
    struct = _STRUCT.search(text)
    if struct is None:
        return {}
    return {
        found["name"]: _declared(found["type"], found["default"], names.get(found["type"], {}))
        for found in _FIELD.finditer(struct["body"])
    }


def _declared(type_name: str, default: str, names: Mapping[str, str]) -> DeclaredParameter:
    if names:
        return DeclaredParameter(ParameterKind.CHOICE, names.get(default, default), tuple(names.values()))
    if type_name == "bool":
        return DeclaredParameter(ParameterKind.BOOLEAN, default, _BOOLEANS)
    if _INTEGER.fullmatch(type_name):
        return DeclaredParameter(ParameterKind.INTEGER, default)
    if type_name in ("float", "double"):
        return DeclaredParameter(ParameterKind.NUMBER, default.rstrip("f"))
    if found := _TYPE.fullmatch(default):
        return DeclaredParameter(ParameterKind.TEXT, found[1].lower() + found[2])
    return DeclaredParameter(ParameterKind.TEXT, default.strip('"'))


def parameters_of_python(rows: Mapping[str, object]) -> dict[str, DeclaredParameter]:
    """The parameters of a Python generator, from the defaults of its class; a type is given as its text."""
    return {name: _of_python(value) for name, value in rows.items()}


def _of_python(value: object) -> DeclaredParameter:
    match value:
        case bool():
            return DeclaredParameter(ParameterKind.BOOLEAN, str(value).lower(), _BOOLEANS)
        case int():
            return DeclaredParameter(ParameterKind.INTEGER, str(value))
        case float():
            return DeclaredParameter(ParameterKind.NUMBER, repr(value))
    return DeclaredParameter(ParameterKind.TEXT, str(value))
