"""Values that an option may have, for property tests."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.values.options import DeclaredOption

_LINES = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1, max_size=12)
# What an option with the name of something takes.
_NAMES = st.from_regex("[a-z][a-z0-9_]{0,8}", fullmatch=True)


def option_values(option: DeclaredOption) -> SearchStrategy[Any]:
    """What the option takes, as a file has it."""

    def is_right(value: object) -> bool:
        try:
            option.read(value)
        except UsageError:
            return False
        return True

    return _values(option.hint).filter(is_right)


def _values(hint: Any) -> SearchStrategy[Any]:
    inner = get_args(hint)
    if get_origin(hint) is Literal:
        return st.sampled_from(inner)
    if get_origin(hint) is tuple:
        return st.lists(_values(inner[0]), max_size=3).map(tuple)
    if get_origin(hint) is Mapping:
        return st.dictionaries(_LINES, _values(inner[1]), max_size=3)
    if type(None) in inner:
        return st.none() | _values(next(kind for kind in inner if kind is not type(None)))
    if issubclass(hint, Enum):
        return st.sampled_from(list(hint))
    if hint is Path:
        return _LINES.map(lambda text: Path("/") / text.replace("/", ""))
    if hint is float:
        return st.floats(0, 2, allow_nan=False) | st.floats(allow_nan=False, allow_infinity=False)
    return {int: st.integers(0, 1000), str: _LINES | _NAMES | st.just("input=64x48 gain=2"), bool: st.booleans()}[hint]
