"""What a single value of `devices.toml` may be; each check returns the value as a device holds it, or raises Unfit."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Mapping

from devices.inventory.address import parse_ssh_address
from devices.inventory.inventory import Fact
from devices.remote_place import PasswordSource
from targets.values.checks import nearest

HIGHEST_CORE = 4095
PASSWORD_SOURCES = (PasswordSource.PROMPT.value, PasswordSource.KEYRING.value)
_MOST_ITEMS = 64
_LONGEST_TEXT_CHARACTERS = 1024
_LARGEST_FACT = 2**63
_FOLDER = re.compile(r"[A-Za-z0-9_/.][A-Za-z0-9_@%+=:,./-]{0,199}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_CORE_RANGES = re.compile(r"[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*", re.ASCII)


class Unfit(Exception):
    """A value is not what its key wants; the text says what was expected and what was found."""


def kind_of(value: object) -> str:
    """Say in TOML's words what a value is."""
    if isinstance(value, bool):
        return "true or false"
    for kind, word in ((str, "a string"), (int, "an integer"), (float, "a float"), (list, "a list")):
        if isinstance(value, kind):
            return word
    return "a table" if isinstance(value, Mapping) else "a date or time"


def one_line(value: object) -> str:
    """A string of one line, not empty and not long."""
    if not isinstance(value, str):
        raise Unfit(f"a string, not {kind_of(value)}")
    if not value.strip() or not value.isprintable() or len(value) > _LONGEST_TEXT_CHARACTERS:
        raise Unfit(f"a string of 1 to {_LONGEST_TEXT_CHARACTERS} printable characters on one line")
    return value


def word(value: object) -> str:
    """A short string without white space."""
    text = one_line(value)
    if any(character.isspace() for character in text) or len(text) > 64:
        raise Unfit(f"words of at most 64 characters without white space; '{text[:80]}' is none")
    return text


def one_of(valid: tuple[str, ...]) -> Callable[[object], str]:
    """A check for one of the given words."""

    def check(value: object) -> str:
        text = one_line(value)
        if text not in valid:
            close = nearest(text, valid)
            hint = f"; the nearest is '{close}'" if close else ""
            raise Unfit(f"one of {', '.join(valid)}, not '{text[:80]}'{hint}")
        return text

    return check


def password_source(value: object) -> str:
    """Where a password comes from. What else stands there may be one, and is not shown."""
    if value not in PASSWORD_SOURCES:
        raise Unfit(f"one of {', '.join(PASSWORD_SOURCES)}: where the password comes from, never itself")
    return str(value)


def whole_number(smallest: int, largest: int) -> Callable[[object], int]:
    """A check for an integer of the range, its ends included."""

    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise Unfit(f"an integer from {smallest} to {largest}, not {kind_of(value)}")
        if not smallest <= value <= largest:
            # Python refuses to print integers of more than 4,300 digits.
            found = str(value) if abs(value) < 10**20 else "a number of more than 20 digits"
            raise Unfit(f"an integer from {smallest} to {largest}, not {found}")
        return value

    return check


def true_or_false(value: object) -> bool:
    """A truth value."""
    if not isinstance(value, bool):
        raise Unfit(f"true or false, not {kind_of(value)}")
    return value


def list_of(check: Callable[[object], str]) -> Callable[[object], tuple[str, ...]]:
    """A check for a short list of strings, each passing `check`, none twice."""

    def check_list(value: object) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise Unfit(f"a list of strings, not {kind_of(value)}")
        if len(value) > _MOST_ITEMS:
            raise Unfit(f"a list of at most {_MOST_ITEMS} strings, not {len(value)}")
        found = tuple(check(item) for item in value)
        for item in found:
            if found.count(item) > 1:
                raise Unfit(f"a list without repetition; '{item}' is in it twice")
        return found

    return check_list


def jump_host(value: object) -> str:
    """An SSH server on the way, as a user writes it."""
    text = one_line(value)
    parse_ssh_address(text)
    return text


def core_list(value: object) -> tuple[int, ...]:
    """Core numbers, as a list or as text such as '2-3,6'; none twice."""
    if isinstance(value, str):
        cores = _cores_of_text(value)
    elif isinstance(value, list):
        if len(value) > HIGHEST_CORE + 1:
            raise Unfit(f"at most {HIGHEST_CORE + 1} cores, not {len(value)}")
        check = whole_number(0, HIGHEST_CORE)
        cores = [check(item) for item in value]
    else:
        raise Unfit(f'a list such as [2, 3] or "2-3,6", not {kind_of(value)}')
    if not cores:
        raise Unfit("a list of at least one core")
    seen: set[int] = set()
    for core in cores:
        if core in seen:
            raise Unfit(f"a list without repetition; core {core} is in it twice")
        seen.add(core)
    return tuple(cores)


def _cores_of_text(text: str) -> list[int]:
    plain = text.replace(" ", "")
    if len(text) > _LONGEST_TEXT_CHARACTERS or not _CORE_RANGES.fullmatch(plain):
        raise Unfit(f"a list such as [2, 3] or \"2-3,6\", not '{text[:80]}'")
    cores: list[int] = []
    for part in plain.split(","):
        first, _, last = part.partition("-")
        lowest, highest = int(first), int(last or first)
        if highest < lowest or highest > HIGHEST_CORE:
            raise Unfit(f"ranges from a lower to a higher core, at most {HIGHEST_CORE}; '{part}' is none")
        cores += range(lowest, highest + 1)
        if len(cores) > HIGHEST_CORE + 1:
            raise Unfit("a list without repetition")
    return cores


def environment(value: object) -> tuple[tuple[str, str], ...]:
    """Environment variables, in the order written."""
    if not isinstance(value, Mapping):
        raise Unfit(f'a table such as {{ OMP_NUM_THREADS = "2" }}, not {kind_of(value)}')
    if len(value) > _MOST_ITEMS:
        raise Unfit(f"a table of at most {_MOST_ITEMS} variables, not {len(value)}")
    for name, text in value.items():
        if not _VARIABLE.fullmatch(name):
            raise Unfit(f"a table of variables; {name[:80]!r} is not a variable's name")
        if not isinstance(text, str) or len(text) > _LONGEST_TEXT_CHARACTERS or not (text.isprintable() or not text):
            raise Unfit(f"a table of strings of printable characters; {name}'s value is none")
    return tuple(value.items())


def device_folder(value: object) -> str:
    """A path on a device that a shell there takes as it is."""
    text = one_line(value)
    if not _FOLDER.fullmatch(text) or ".." in text.split("/") or text.strip("/.") == "":
        raise Unfit(
            "a path of at most 200 letters, digits and _ @ % + = : , . / - without '..' (it reaches the device's "
            f"shell), not '{text[:80]}'"
        )
    return text


def absolute_device_folder(value: object) -> str:
    """The same, from the root."""
    text = device_folder(value)
    if not text.startswith("/"):
        raise Unfit(f"an absolute path, not '{text}'")
    return text


def table_of_anything(value: object) -> Mapping[str, object]:
    """A table, whatever is in it."""
    if not isinstance(value, Mapping):
        raise Unfit(f"a table, not {kind_of(value)}")
    return value


def facts(value: object) -> tuple[tuple[str, Fact], ...]:
    """What was probed, for people: numbers, short texts and lists of them."""
    table = table_of_anything(value)
    if len(table) > _MOST_ITEMS:
        raise Unfit(f"a table of at most {_MOST_ITEMS} facts, not {len(table)}")
    found: list[tuple[str, Fact]] = []
    for key, fact in table.items():
        if not key.isprintable() or not 1 <= len(key) <= 64:
            raise Unfit(f"a table whose keys have 1 to 64 printable characters; {key[:80]!r} is none")
        if isinstance(fact, list):
            if len(fact) > HIGHEST_CORE + 1:
                raise Unfit(f"a table of facts; '{key}' has too many items")
            found.append((key, tuple(_fact(key, item) for item in fact)))
        else:
            found.append((key, _fact(key, fact)))
    return tuple(found)


def _fact(key: str, value: object) -> bool | int | float | str:
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, int) and abs(value) < _LARGEST_FACT:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, str) and value.isprintable() and len(value) <= _LONGEST_TEXT_CHARACTERS:
        return value
    raise Unfit(f"a table of numbers, short texts and lists of them; '{key}' is none")
