"""Values of a device's reply, checked one by one."""

from __future__ import annotations

from collections.abc import Mapping

from devices.agent.wire import printable
from devices.device_trouble import DeviceTrouble, TroubleKind

_LONGEST_TEXT = 300
_MOST_ROWS = 16384


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
        self._source = source

    def number(self, key: str) -> float:
        """A finite number."""
        value = self.optional_number(key)
        if value is None:
            raise self._wrong(key, "a number")
        return value

    def optional_number(self, key: str) -> float | None:
        """A finite number, or None where the device does not know it."""
        value = self._value(key)
        if value is None:
            return None
        # Booleans are integers to Python.
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
            raise self._wrong(key, "a number")
        return float(value)

    def integer(self, key: str) -> int:
        """A whole number."""
        value = self.number(key)
        if value != int(value):
            raise self._wrong(key, "a whole number")
        return int(value)

    def flag(self, key: str) -> bool:
        """A truth value."""
        value = self._value(key)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def text(self, key: str) -> str:
        """A short text, printable."""
        value = self.optional_text(key)
        if value is None:
            raise self._wrong(key, "a text")
        return value

    def optional_text(self, key: str) -> str | None:
        """A short text, printable, or None where the device does not know it."""
        value = self._value(key)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self._wrong(key, "a text")
        return printable(value)[:_LONGEST_TEXT]

    def rows(self, key: str) -> list[ReplyFields]:
        """A list of objects."""
        return [self._row(key, row) for row in self._list(key)]

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of short texts."""
        return tuple(ReplyFields({key: value}, self._source).text(key) for value in self._list(key))

    def numbers(self, key: str) -> tuple[float, ...]:
        """A list of finite numbers."""
        return tuple(ReplyFields({key: value}, self._source).number(key) for value in self._list(key))

    def _value(self, key: str) -> object:
        if key not in self._fields:
            raise self._wrong(key, "a value")
        return self._fields[key]

    def _list(self, key: str) -> list[object]:
        value = self._value(key)
        if not isinstance(value, list) or len(value) > _MOST_ROWS:
            raise self._wrong(key, "a list")
        return value

    def _row(self, key: str, row: object) -> ReplyFields:
        if not isinstance(row, dict):
            raise self._wrong(key, "a list of objects")
        return ReplyFields(row, self._source)

    def _wrong(self, key: str, expected: str) -> DeviceTrouble:
        return DeviceTrouble(TroubleKind.PROTOCOL_ERROR, f"{self._source} answered without {expected} for {key}.")
