"""A generator parameter with the values that a run may give it, as users write them: `tile_x=16..512:x2`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from halide_autotune.targets.errors import UsageError

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.]*")
_NUMBER = r"-?\d{1,12}(?:\.\d{1,9})?"
_RANGE = re.compile(rf"(?P<low>{_NUMBER})\.\.(?P<high>{_NUMBER})(?::(?P<how>[x+]?)(?P<step>{_NUMBER}))?", re.ASCII)
_A_NUMBER = re.compile(_NUMBER, re.ASCII)
# Harmless in CMake, TOML and a shell, where it is written when it ships.
_VALUE = re.compile(r"[A-Za-z0-9_.+-]{1,100}", re.ASCII)
_MOST_VALUES = 4096
_FORMS = "Write a range such as 16..512:x2 or 8..64:+8, or a list such as 8,16 or true,false."


@dataclass(frozen=True)
class TunedParameter:
    """A parameter and its values.

    Attributes:
        values: at least two, all different; numbers are sorted.
        is_ordered: they are numbers, so that neighbours are alike.
    """

    name: str
    values: tuple[str, ...]
    is_ordered: bool


def as_number(text: str) -> Fraction | None:
    """A value as a number, exactly; None if it is none."""
    return Fraction(text) if _A_NUMBER.fullmatch(text) else None


def is_value(text: str) -> bool:
    """Whether a parameter can be given this value, as one writes it."""
    return _VALUE.fullmatch(text) is not None


def parse_tuned_parameter(name: str, text: str) -> TunedParameter:
    """Parse the values of a parameter: `16..512:x2` (times 2), `8..64:8` or `8..64:+8` (plus 8), `8..64`, or a list.

    Raises:
        UsageError: it is none of these, or gives fewer than two values.
    """
    where = f"--tune {name}={text}"
    if not _NAME.fullmatch(name):
        raise UsageError(f"{where}: {name!r} cannot be a generator parameter.", next_step="Write --tune name=values.")
    found = _RANGE.fullmatch(text)
    values = list(_range_values(where, found)) if found else text.split(",")
    for value in values:
        if not is_value(value) or ".." in value:
            raise UsageError(f"{where}: {value!r} is neither a value nor a range.", next_step=_FORMS)
    twice = next((value for place, value in enumerate(values) if value in values[:place]), None)
    if twice is not None:
        raise UsageError(f"{where} has {twice} twice.")
    if len(values) < 2:
        raise UsageError(f"{where} has only one value.", next_step=f"Give it with -p {name}={values[0]} instead.")
    numbers = [as_number(value) for value in values]
    if any(number is None for number in numbers):
        return TunedParameter(name, tuple(values), is_ordered=False)
    return TunedParameter(name, tuple(sorted(values, key=Fraction)), is_ordered=True)


def parse_tune(items: Iterable[str]) -> dict[str, str]:
    """Parameter → its values as they are written, from items such as `tile_x=16..512:x2`.

    Raises:
        UsageError: an item is not `name=values`, or names a parameter again.
    """
    tune: dict[str, str] = {}
    for item in items:
        name, equals, text = item.partition("=")
        if not equals:
            raise UsageError(f"--tune {item!r} must have the form name=values.", next_step=_FORMS)
        if name in tune:
            raise UsageError(f"--tune gives the parameter {name} twice.")
        parse_tuned_parameter(name, text)
        tune[name] = text
    return tune


def _range_values(where: str, found: re.Match[str]) -> Iterator[str]:
    low, high, step = Fraction(found["low"]), Fraction(found["high"]), Fraction(found["step"] or 1)
    is_geometric = found["how"] == "x"
    if low > high:
        raise UsageError(
            f"{where} is empty: {found['low']} is above {found['high']}.", next_step="Put the lower end first."
        )
    if is_geometric and (low <= 0 or step <= 1):
        raise UsageError(
            f"{where} has no end: values are multiplied, from a number above 0, by one above 1.", next_step=_FORMS
        )
    if step <= 0:
        raise UsageError(f"{where} has no end: the step must be above 0.", next_step=_FORMS)
    count, value = 0, low
    while value <= high:
        count += 1
        if count > _MOST_VALUES:
            raise UsageError(f"{where} has more than {_MOST_VALUES} values.", next_step="Use a larger step.")
        yield _text(value)
        value = value * step if is_geometric else value + step


def _text(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else repr(float(value))
