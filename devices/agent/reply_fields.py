"""Values of a device's reply, which is not trusted."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, TypeVar

from devices.agent.wire import printable
from devices.device_trouble import DeviceTrouble, TroubleKind
from targets.values.checks import Check, Unfit, any_text, number, optional, shown, true_or_false
from targets.values.records import Source, record

_LONGEST_TEXT = 300
_number = number(-1e300, 1e300)

T = TypeVar("T")


def _text(value: object) -> str:
    return printable(any_text(value))[:_LONGEST_TEXT]


def _integer(value: object) -> int:
    found = _number(value)
    if not found.is_integer():
        raise Unfit("an integer", shown(value))
    return int(found)


# Types of a reply's fields: a short printable text, and an integer.
ReplyText = Annotated[str, _text]
ReplyInteger = Annotated[int, _integer]


class ReplyFields:
    """The fields of one JSON object that a device sent.

    Args:
        fields: as JSON gave them.
        source: which device and what it was asked, for messages.

    Raises:
        DeviceTrouble: PROTOCOL_ERROR, by every method: the field is missing or of another type than asked for.
    """

    def __init__(self, fields: Mapping[str, object], source: str) -> None:
        self._fields = fields
        self._source = Source(
            f"{source} answered something else than asked", partial(DeviceTrouble, TroubleKind.PROTOCOL_ERROR)
        )

    def record(self, kind: type[T]) -> T:
        """All fields, as a dataclass declares them."""
        return self._source.check(record(kind, passes_unknown=True), self._fields)

    def value(self, key: str, check: Check[T]) -> T:
        """One field."""
        if key not in self._fields:
            raise self._source.refuse(f"the key '{key}' is missing.")
        return self._source.check(check, self._fields.get(key), key=key)

    def number(self, key: str) -> float:
        """A finite number."""
        return self.value(key, _number)

    def optional_number(self, key: str) -> float | None:
        """A finite number, or None where the device does not know it."""
        return self.value(key, optional(_number))

    def integer(self, key: str) -> int:
        """A whole number."""
        return self.value(key, _integer)

    def flag(self, key: str) -> bool:
        """A truth value."""
        return self.value(key, true_or_false)

    def text(self, key: str) -> str:
        """A short text, printable."""
        return self.value(key, _text)
