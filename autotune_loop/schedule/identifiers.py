"""Names that both C++ and Python take as identifiers."""

from __future__ import annotations

import keyword
import re
from collections.abc import Container

CPP_KEYWORDS = frozenset(
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class "
    "co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype "
    "default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int "
    "long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register "
    "reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch "
    "template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile "
    "wchar_t while xor xor_eq".split()
)
# What the printed functions call their own.
_OUR_OWN = frozenset(
    "Func Halide MemoryType RVar TailStrategy Var apply_schedule check_pipeline func_named get_pipeline halide_sdk_1 "
    "hl loop_names pipeline std strict target".split()
)
_RESERVED = CPP_KEYWORDS | _OUR_OWN | frozenset(keyword.kwlist)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_identifier(text: str) -> bool:
    """Whether `text` can be used as it is."""
    return _IDENTIFIER.fullmatch(text) is not None and text not in _RESERVED


def make_identifier(text: str, taken: Container[str]) -> str:
    """`text` where it can be used as it is, else the nearest that can and is not taken."""
    made = re.sub(r"[^A-Za-z0-9_]", "_", text)
    if not made or made[0].isdigit():
        made = "_" + made
    while made in _RESERVED or made in taken:
        made += "_"
    return made
