"""Tables of TOML and JSON files, read into frozen dataclasses that declare their keys.

    @dataclass(frozen=True)
    class Server:
        address: Annotated[str, one_line, Example('address = "pi@board"')]
        port: Annotated[int, whole_number(1, 65535)] = 22
        labels: tuple[str, ...] = ()

    source = Source(file, UsageError, next_step="Correct the file.")
    server = source.check(record(Server), source.toml(source.read(file)))

A field's name is the key; without a default it must be there. Its check is the one it is annotated with, else the one
that its type has: text, numbers, truth values, paths, an Enum of strings, a Literal, `X | None`, `tuple[X, ...]`,
`tuple[X, Y]`, `Mapping[str, X]` and other dataclasses, which are tables.
"""

from __future__ import annotations

import json
import tomllib
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from halide_autotune.targets.errors import SdkError
from halide_autotune.targets.values.checks import (
    Check,
    Unfit,
    any_text,
    check_at,
    kind_of,
    list_of,
    member_of,
    nearest,
    number,
    one_of,
    optional,
    path,
    row_of,
    shown_key,
    table_of,
    true_or_false,
    whole_number,
)

T = TypeVar("T")

LARGEST_FILE_BYTES = 2**20
_MISSING = "the key '{0}' is missing; expected {text}."
_UNKNOWN = "unknown key '{0}'; expected one of {text}."
_UNKNOWN_BUT_NEAR = "unknown key '{0}'; the nearest is '{1}'."
_CHECKS: Mapping[object, Check[Any]] = {
    str: any_text,
    int: whole_number(),
    float: number(),
    bool: true_or_false,
    Path: path,
    object: lambda value: value,
}


@dataclass(frozen=True)
class Example:
    """In an annotation: what is said to be expected where the key is missing."""

    text: str


@dataclass(frozen=True)
class Source:
    """Where values come from, and the error that is raised for a wrong one.

    Attributes:
        name: starts every message, such as the path of a file, or that it is damaged.
        error: makes what is raised, of a message and a `next_step`; such as a kind of SdkError.
        next_step: what the user can do about a wrong file; may be empty.
    """

    name: str | Path
    error: Callable[..., SdkError]
    next_step: str = ""

    def refuse(self, problem: str, *, next_step: str = "") -> SdkError:
        """Return the error for a problem, which is a sentence that goes on after the name."""
        return self.error(f"{self.name}: {problem}", next_step=next_step or self.next_step)

    def read(self, file: Path, *, most_bytes: int = LARGEST_FILE_BYTES) -> str:
        """Return the text of a file.

        Raises:
            FileNotFoundError: there is none, which each reader has its own words for.
            SdkError: of this source's kind: it cannot be read, is too large or is not UTF-8.
        """
        try:
            with file.open("rb") as opened:
                data = opened.read(most_bytes + 1)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise FileNotFoundError(*error.args) from error
        except OSError as error:
            raise self.error(f"{file} cannot be read ({error.strerror}).", next_step=self.next_step) from error
        if len(data) > most_bytes:
            raise self.refuse(f"the file has more than {most_bytes} bytes.")
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise self.refuse(f"byte {error.start} is not UTF-8.") from error

    def toml(self, text: str) -> dict[str, Any]:
        """Return the tables of a TOML text.

        Raises:
            SdkError: of this source's kind: it is not TOML; the message has the line.
        """
        return self._parsed(tomllib.loads, text, "TOML")

    def json(self, text: str) -> object:
        """Return the value of a JSON text.

        Raises:
            SdkError: of this source's kind: it is not JSON; the message has the line.
        """
        return self._parsed(json.loads, text, "JSON")

    def _parsed(self, parse: Callable[[str], T], text: str, form: str) -> T:
        try:
            return parse(text)
        except RecursionError as error:
            raise self.refuse("the file is nested too deeply.") from error
        except ValueError as error:  # with the line, or a number too long for Python
            raise self.refuse(f"not valid {form}: {error}.") from error

    def check(self, check: Check[T], value: object, *, key: str = "") -> T:
        """Return a value as `check` gives it.

        Args:
            key: of a value that stands alone.

        Raises:
            SdkError: of this source's kind, naming the source, the key, what is expected and the nearest valid name.
        """
        try:
            return check_at(key, check, value) if key else check(value)
        except Unfit as error:
            next_step = error.next_step or self.next_step
            raise self.error(error.message(str(self.name)), next_step=next_step) from error


def record(kind: type[T], *, passes_unknown: bool = False, absent_is_none: bool = False) -> Check[T]:
    """A check for a table with the keys of a dataclass, which it makes.

    Args:
        passes_unknown: leave out keys that it does not have, as another version may have written them.
        absent_is_none: what may be None is None where its key is missing, as TOML has no null.
    """
    return _Record(kind, passes_unknown, absent_is_none=absent_is_none)


def check_of_type(hint: Any) -> Check[Any]:
    """The check of a type, annotated or not, as a field's."""
    return _check_of(hint, _Record(object))


def part_of(kind: type[Any]) -> Check[Mapping[str, object]]:
    """A check for a table with some keys of a dataclass; it returns the table as it is."""
    return _Record(kind, is_part=True)


def plain(value: object) -> Any:
    """Return a value as JSON has it; `record` reads it back. A dataclass becomes a table, None stays."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value) if field.init}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, Path) else value


def toml_text(table: Mapping[str, object], *, comment: str = "") -> str:
    """Return the TOML of a table as `plain` gives it; a value that is None is left out.

    Args:
        comment: the first line.
    """
    import tomlkit

    return (f"# {comment}\n\n" if comment else "") + tomlkit.dumps(_writable(table))


def _writable(value: object) -> Any:
    if isinstance(value, Mapping):
        return {_writable(key): _writable(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_writable(item) for item in value]
    # Half a surrogate pair comes from a command line that is not UTF-8.
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


@dataclass(frozen=True)
class _Key:
    check: Check[Any]
    required: bool
    example: str
    may_be_none: bool


@dataclass(frozen=True)
class _Record:
    """Reads a table into a dataclass, or checks the part of it that is there."""

    kind: type[Any]
    passes_unknown: bool = False
    is_part: bool = False
    absent_is_none: bool = False

    def __call__(self, value: object) -> Any:
        if not isinstance(value, Mapping):
            raise Unfit("a table", kind_of(value))
        keys, found = _keys(self), {}
        for name, item in value.items():
            if name in keys:
                found[name] = check_at(name, keys[name].check, item)
            elif not self.passes_unknown:
                raise _unknown_key(name, self)
        if self.is_part:
            return value
        for name, key in keys.items():
            if key.required and name not in found and key.may_be_none and self.absent_is_none:
                found[name] = None
            elif key.required and name not in found:
                if not isinstance(key.check, _Record):
                    raise Unfit(key.example or _expected(key.check), keys=(name,), form=_MISSING)
                found[name] = check_at(name, key.check, {})  # which says what it lacks
        return self.kind(**found)


def _unknown_key(name: str, reader: _Record) -> Unfit:
    """Say which key is nearest: of the same table, else of one inside it."""
    keys = _keys(reader)
    dotted = {full.rpartition(".")[2]: full for full in reversed(_dotted_names(reader))} | {key: key for key in keys}
    close = nearest(name, keys) or nearest(name, dotted)
    if close is None:
        return Unfit(", ".join(sorted(keys)), keys=(shown_key(name),), form=_UNKNOWN)
    return Unfit(close, keys=(shown_key(name), dotted[close]), form=_UNKNOWN_BUT_NEAR)


def _dotted_names(reader: _Record) -> list[str]:
    names = []
    for name, key in _keys(reader).items():
        inner = _dotted_names(key.check) if isinstance(key.check, _Record) else []
        names += [name, *(f"{name}.{each}" for each in inner)]
    return names


@cache
def _keys(reader: _Record) -> Mapping[str, _Key]:
    hints = get_type_hints(reader.kind, include_extras=True)
    keys = {}
    for field in fields(reader.kind):
        if field.init:
            check = _check_of(hints[field.name], reader)
            example = next((item.text for item in get_args(hints[field.name]) if isinstance(item, Example)), "")
            required = field.default is MISSING and field.default_factory is MISSING
            keys[field.name] = _Key(check, required, example, _may_be_none(hints[field.name]))
    return keys


def _expected(check: Check[Any]) -> str:
    try:
        check(None)
    except Unfit as error:
        return error.expected
    return "a value"


def _may_be_none(hint: Any) -> bool:
    bare = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return types.NoneType in get_args(bare)


def _check_of(hint: Any, reader: _Record) -> Check[Any]:
    """The check of a type or annotation; tables are read as `reader` reads its own."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        own = next((item for item in inner[1:] if callable(item)), None)
        if own is None:
            return _check_of(inner[0], reader)
        return optional(own) if types.NoneType in get_args(inner[0]) else own
    if origin in (Union, types.UnionType) and types.NoneType in inner and len(inner) == 2:
        return optional(_check_of(next(item for item in inner if item is not types.NoneType), reader))
    if origin is Literal:
        return one_of(inner)
    if origin is tuple and inner[1:] == (...,):
        return list_of(_check_of(inner[0], reader))
    if origin is tuple:
        return row_of(*(_check_of(item, reader) for item in inner))
    if origin in (Mapping, dict):
        return table_of(_check_of(inner[1], reader))
    if isinstance(hint, type) and is_dataclass(hint):
        return replace(reader, kind=hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return member_of(hint)
    if hint not in _CHECKS:
        raise TypeError(f"no check is known for {hint}; annotate it with one")
    return _CHECKS[hint]
