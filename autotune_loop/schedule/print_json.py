"""A schedule as plain values for JSON, and back."""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from autotune_loop.schedule.check import check_schedule
from autotune_loop.schedule.directives import Directive
from autotune_loop.schedule.model import (
    Accessor,
    ByIndex,
    ByName,
    Intermediate,
    Schedule,
    Wrapper,
)
from targets.errors import GeneratorError

_FORMAT = "halide-schedule"
_VERSION = 1
_KIND = "kind"


def _snake_case(kind: type) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()


# Classes that stand for each other are told apart by a key, "kind".
_TAGGED = {
    kind: _snake_case(kind) for kind in (*typing.get_args(Directive), ByIndex, ByName, Wrapper, Intermediate, Accessor)
}


def to_dict(schedule: Schedule) -> dict[str, Any]:
    """`schedule` as dictionaries, lists, strings and numbers, under a format and a version."""
    return {"format": _FORMAT, "version": _VERSION, **_encode(schedule)}


def _encode(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [_encode(item) for item in value]
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    fields = {field.name: _encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    tag = _TAGGED.get(type(value))
    return fields if tag is None else {_KIND: tag, **fields}


def from_dict(data: Mapping[str, Any]) -> Schedule:
    """The schedule that `to_dict` gave.

    Raises:
        GeneratorError: it is of another format or version, a value is missing, unknown or of the wrong type, or the
            schedule does not hold together. The message has the place.
    """
    if not isinstance(data, Mapping) or data.get("format") != _FORMAT:
        raise _wrong("the file", f"a schedule of format {_FORMAT!r}")
    if type(data.get("version")) is not int or data["version"] != _VERSION:
        raise _wrong("version", f"{_VERSION}, the only one that this SDK reads")
    fields = {key: value for key, value in data.items() if key not in ("format", "version")}
    schedule = _decode_fields(Schedule, fields, "schedule")
    assert isinstance(schedule, Schedule)
    check_schedule(schedule)
    return schedule


def _decode_fields(kind: type, data: Any, place: str) -> Any:
    if not isinstance(data, Mapping):
        raise _wrong(place, "an object")
    hints = typing.get_type_hints(kind)
    unknown = sorted(str(key) for key in data.keys() - hints.keys())
    missing = sorted(hints.keys() - data.keys())
    if unknown or missing:
        raise _wrong(place, f"exactly the keys {', '.join(sorted(hints)) or 'of nothing'}")
    return kind(**{name: _decode(hint, data[name], f"{place}.{name}") for name, hint in hints.items()})


def _decode(hint: Any, value: Any, place: str) -> Any:
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return _decode_union(typing.get_args(hint), value, place)
    if typing.get_origin(hint) is tuple:
        return _decode_tuple(typing.get_args(hint), value, place)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _decode_fields(hint, value, place)
    if issubclass(hint, Enum):
        values = [member.value for member in hint]
        if not isinstance(value, str) or value not in values:
            raise _wrong(place, f"one of {', '.join(values)}")
        return hint(value)
    if type(value) is not hint:
        raise _wrong(place, _JSON_WORDS[hint])
    return value


_JSON_WORDS = {str: "a string", int: "a whole number", bool: "true or false"}


def _decode_union(kinds: Sequence[Any], value: Any, place: str) -> Any:
    if value is None and types.NoneType in kinds:
        return None
    by_tag = {_TAGGED[kind]: kind for kind in kinds if kind in _TAGGED}
    if isinstance(value, Mapping) and by_tag:
        tag = value.get(_KIND)
        if not isinstance(tag, str) or tag not in by_tag:
            raise _wrong(f"{place}.{_KIND}", f"one of {', '.join(by_tag)}")
        fields = {key: item for key, item in value.items() if key != _KIND}
        return _decode_fields(by_tag[tag], fields, place)
    plain = [kind for kind in kinds if kind not in _TAGGED and kind is not types.NoneType]
    if len(plain) != 1:
        raise _wrong(place, "an object")
    return _decode(plain[0], value, place)


def _decode_tuple(kinds: Sequence[Any], value: Any, place: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise _wrong(place, "a list")
    if kinds[-1] is Ellipsis:
        return tuple(_decode(kinds[0], item, f"{place}[{index}]") for index, item in enumerate(value))
    if len(value) != len(kinds):
        raise _wrong(place, f"a list of {len(kinds)}")
    return tuple(
        _decode(kind, item, f"{place}[{index}]") for index, (kind, item) in enumerate(zip(kinds, value, strict=True))
    )


def _wrong(place: str, expected: str) -> GeneratorError:
    return GeneratorError(
        f"The JSON of a schedule is damaged at {place}: expected {expected}.",
        next_step="Write it again from the schedule's header.",
    )
