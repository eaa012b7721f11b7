"""What a single value of a TOML or JSON file may be.

A check takes a value as the file's parser gives it, and returns it as the program holds it, or raises `Unfit`.
These are plain functions, because neither msgspec nor cattrs names the file, the nearest valid name and what to do
next, or keeps quiet about a value that may be a password.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from enum import Enum
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from halide_autotune.targets.errors import SdkError

T = TypeVar("T")
E = TypeVar("E", bound=Enum)
Check: TypeAlias = Callable[[object], T]

_LONGEST_LINE_CHARACTERS = 1024
_LONGEST_WORD_CHARACTERS = 64
_SHOWN_CHARACTERS = 80
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]{1,80}|\[[0-9]+\]")
_MUST_BE = "key '{0}' must be {text}."
_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "true or false"),
    (str, "a string"),
    (int, "an integer"),
    (float, "a float"),
    (list, "a list"),
    (Mapping, "a table"),
    (type(None), "null"),
)


class Unfit(Exception):
    """A value is not what its key expects.

    Attributes:
        expected: what the value must be.
        keys: the dotted key of the value, and further keys that the message names.
        next_step: what to do about it; may be empty.
    """

    def __init__(self, expected: str, found: str = "", *, keys: tuple[str, ...] = ("",), form: str = _MUST_BE) -> None:
        super().__init__(f"{expected}, not {found}" if found else expected)
        self.expected = expected
        self.keys = keys
        self.next_step = ""
        self._form = form

    def message(self, where: str) -> str:
        """Say what is wrong, and where: the file, then the key."""
        return f"{where}: {self._form.format(*self.keys, text=self)}".replace("key '' must", "it must")


def check_at(key: str, check: Check[T], value: object) -> T:
    """Check the value at a key of a table (or at an index such as `[3]` of a list).

    Raises:
        Unfit: it is not right; the error has the key.
    """
    outer = shown_key(key)
    try:
        return check(value)
    except Unfit as error:
        error.keys = tuple(
            outer + (inner if not inner or inner.startswith("[") else f".{inner}") for inner in error.keys
        )
        raise
    except SdkError as error:  # of a parser that is used as a check
        unfit = Unfit(error.message, keys=(outer,), form="key '{0}': {text}")
        unfit.next_step = error.next_step
        raise unfit from error


def kind_of(value: object) -> str:
    """Say in TOML's words what a value is."""
    return next((words for kind, words in _KINDS if isinstance(value, kind)), "a date or time")


def shown(value: object) -> str:
    """Show a value in a message: on one line, and never long."""
    if isinstance(value, str):
        return f"'{value[:_SHOWN_CHARACTERS]}'" if value.isprintable() else ascii(value[:_SHOWN_CHARACTERS])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return kind_of(value)
    # Python refuses to print integers of more than 4,300 digits.
    return str(value) if isinstance(value, float) or abs(value) < 10**20 else "a number of more than 20 digits"


def shown_key(key: str) -> str:
    """Show a key in a message, in quotes where the file needs them."""
    if _PLAIN_KEY.fullmatch(key):
        return key
    cut = key[:_SHOWN_CHARACTERS]
    return f'"{cut}"' if cut.isprintable() else '"' + ascii(cut)[1:-1] + '"'


def nearest(word: str, valid: Iterable[str]) -> str | None:
    """Return the valid word that looks most like `word`, or None where none does."""
    return next(iter(get_close_matches(word[:_SHOWN_CHARACTERS], sorted(valid), n=1)), None)


def nearest_hint(word: str, valid: Iterable[str]) -> str:
    """Return `; the nearest is 'WORD'` for the end of a message, or nothing."""
    close = nearest(word, valid)
    return "" if close is None else f"; the nearest is '{close}'"


def _fitting(expected: str, fits: Callable[[Any], object], found: Callable[[object], str]) -> Check[Any]:
    def check(value: object) -> object:
        if not fits(value):
            raise Unfit(expected, found(value))
        return value

    return check


any_text: Check[str] = _fitting("a string", lambda value: isinstance(value, str), kind_of)
true_or_false: Check[bool] = _fitting("true or false", lambda value: isinstance(value, bool), kind_of)
plain_value: Check[str | int | float | bool] = _fitting(
    "a string, a finite number, or true or false",
    lambda value: isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)),
    shown,
)


def one_line(value: object) -> str:
    """A string of one printable line, not empty and not long."""
    text = any_text(value)
    if not text.strip() or not text.isprintable() or len(text) > _LONGEST_LINE_CHARACTERS:
        raise Unfit(f"a string of 1 to {_LONGEST_LINE_CHARACTERS} printable characters on one line")
    return text


def word(value: object) -> str:
    """A short string without white space."""
    text = one_line(value)
    if any(character.isspace() for character in text) or len(text) > _LONGEST_WORD_CHARACTERS:
        raise Unfit(f"a word of at most {_LONGEST_WORD_CHARACTERS} characters without white space", shown(text))
    return text


def matching(pattern: str, expected: str) -> Check[str]:
    """A check for a string that fits a regular expression as a whole; `expected` says it to people."""
    compiled = re.compile(pattern, re.ASCII)
    return _fitting(expected, lambda value: isinstance(value, str) and compiled.fullmatch(value), shown)


def one_of(valid: Iterable[str]) -> Check[str]:
    """A check for one of some words."""
    words = tuple(valid)

    def found(value: object) -> str:
        return shown(value) + (nearest_hint(value, words) if isinstance(value, str) else "")

    return _fitting(f"one of {', '.join(words)}", lambda value: isinstance(value, str) and value in words, found)


def exactly(wanted: str | int) -> Check[str | int]:
    """A check for one value, such as the version of a format."""
    return _fitting(shown(wanted), lambda value: type(value) is type(wanted) and value == wanted, shown)


def member_of(kind: type[E]) -> Check[E]:
    """A check for the value of one of an Enum's members, which are strings."""
    check = one_of(str(member.value) for member in kind)
    return lambda value: kind(check(value))


def whole_number(least: int | None = None, most: int | None = None) -> Check[int]:
    """A check for an integer of a range, its ends included."""
    return _in_range("an integer", int, least, most)


def number(least: float | None = None, most: float | None = None) -> Check[float]:
    """A check for a finite number of a range, its ends included; integers are numbers, too."""
    check = _in_range("a number", (int, float), least, most, sys.float_info.max)
    return lambda value: float(check(value))


def _in_range(
    what: str,
    kinds: type | tuple[type, ...],
    least: float | None,
    most: float | None,
    largest: float = math.inf,
) -> Check[Any]:
    if least is None:
        expected = what if most is None else f"{what} of at most {most}"
    else:
        expected = f"{what} of at least {least}" if most is None else f"{what} from {least} to {most}"
    lowest, highest = -largest if least is None else least, largest if most is None else most

    def check(value: object) -> Any:
        found: Any = value
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise Unfit(expected, kind_of(value))
        if not lowest <= found <= highest or abs(found) > largest:  # NaN is in no range
            raise Unfit(expected, shown(value))
        return found

    return check


def above_zero(most: float | None = None) -> Check[float]:
    """A check for a finite number above zero, and at most `most`."""
    check = number(None, most)

    def check_above(value: object) -> float:
        found = check(value)
        if found <= 0:
            raise Unfit("a number above 0" + ("" if most is None else f" and at most {most:g}"), shown(value))
        return found

    return check_above


def path(value: object) -> Path:
    """A path, absolute or not, which need not exist."""
    return Path(one_line(value))


def optional(check: Check[T]) -> Check[T | None]:
    """A check that takes JSON's null, too."""
    return lambda value: None if value is None else check(value)


def list_of(check: Check[T], *, most: int = sys.maxsize, distinct: bool = False) -> Check[tuple[T, ...]]:
    """A check for a list whose items pass `check`; it is held as a tuple.

    Args:
        most: how many items it may have.
        distinct: no item may be in it twice.
    """

    def check_list(value: object) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise Unfit("a list", kind_of(value))
        if len(value) > most:
            raise Unfit(f"a list of at most {most} items", str(len(value)))
        found = tuple(check_at(f"[{index}]", check, item) for index, item in enumerate(value))
        if distinct and len(set(found)) < len(found):
            twice = next(item for index, item in enumerate(found) if item in found[:index])
            raise Unfit(f"a list without repetition; {shown(twice)} is in it twice")
        return found

    return check_list


def row_of(*checks: Check[Any]) -> Check[tuple[Any, ...]]:
    """A check for a list with one item for each of the checks."""

    def check_row(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list) or len(value) != len(checks):
            found = f"of {len(value)}" if isinstance(value, list) else kind_of(value)
            raise Unfit(f"a list of {len(checks)} items", found)
        return tuple(check_at(f"[{index}]", check, value[index]) for index, check in enumerate(checks))

    return check_row


def table_of(check: Check[T], *, names: Check[str] = any_text, most: int = sys.maxsize) -> Check[dict[str, T]]:
    """A check for a table of any keys, whose values pass `check`, in the order of the file.

    Args:
        names: what its keys must be.
        most: how many keys it may have.
    """

    def check_table(value: object) -> dict[str, T]:
        if not isinstance(value, Mapping):
            raise Unfit("a table", kind_of(value))
        if len(value) > most:
            raise Unfit(f"a table of at most {most} keys", str(len(value)))
        for name in value:
            try:
                names(name)
            except Unfit as error:
                raise Unfit(f"a table whose keys are each {error}") from error
        return {name: check_at(name, check, item) for name, item in value.items()}

    return check_table
