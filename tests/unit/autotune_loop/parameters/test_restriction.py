"""Restrictions: what they may say, that they say the same as Python, and that nothing else gets through."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.autotune_loop.parameters.restriction import parse_restriction
from halide_autotune.targets.errors import UsageError

GIVEN = {"x": "16", "y": "4", "fuse": "true", "order": "rows"}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("x * y <= 64", True),
        ("x*y<64", False),
        ("x % y == 0 and x // y == 4", True),
        ("x / y > 3.9", True),
        ("not fuse or x < 8", False),
        ("fuse", True),
        ("order == 'rows'", True),
        ("order != 'rows' or x > 8", True),
        ("4 < y + 1 <= x - -1", True),
        ("2 ** 3 > x if False else True", None),
    ],
)
def test_conditions(text: str, holds: bool | None) -> None:
    if holds is None:
        with pytest.raises(UsageError, match="is not a condition"):
            parse_restriction(text)
    else:
        assert parse_restriction(text).holds(GIVEN) is holds


@st.composite
def expressions(draw: st.DrawFn) -> str:
    numbers = st.integers(0, 99).map(str) | st.sampled_from(["x", "y"])
    arithmetic = st.recursive(
        numbers,
        lambda inner: st.tuples(inner, st.sampled_from("+-*/%"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        max_leaves=6,
    )
    comparison = st.tuples(arithmetic, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), arithmetic)
    conditions = st.recursive(
        comparison.map(" ".join),
        lambda inner: st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        max_leaves=3,
    )
    return f"x == x and ({draw(conditions)})"


@given(expressions(), st.integers(0, 50), st.integers(0, 50))
def test_a_condition_means_what_it_means_in_python(text: str, x: int, y: int) -> None:
    from fractions import Fraction

    try:
        wanted = bool(eval(text, {"x": Fraction(x), "y": Fraction(y)}))
    except ZeroDivisionError:
        with pytest.raises(UsageError, match="divides by zero where"):
            parse_restriction(text).holds({"x": str(x), "y": str(y)})
        return
    except TypeError:
        return
    # Python's own division of two literals is not exact.
    if "/" not in text:
        assert parse_restriction(text).holds({"x": str(x), "y": str(y)}) is wanted


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "x.bit_length() > 3",
        "[x for x in y]",
        "x ** 9999",
        "(lambda: x)()",
        "x if y else fuse",
        "x[0]",
        "f'{x}'",
        "x is y",
        "x := 3",
        "x = 3",
        "x <",
        "b'x' == x",
        "x == None",
        "",
        "((((" * 200 + "x",
    ],
)
def test_nothing_else_is_understood(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--restrict .*is not a condition"):
        parse_restriction(text)


@given(st.text(max_size=40))
def test_any_text_is_a_condition_or_one_clear_sentence(text: str) -> None:
    try:
        parse_restriction(text)
    except UsageError as error:
        assert error.message.startswith("--restrict")


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(UsageError, match="names no parameter"):
        parse_restriction("1 < 2")
    with pytest.raises(UsageError, match="at most 1000 characters"):
        parse_restriction("x == 1 or " * 200 + "x == 1")
    with pytest.raises(UsageError, match="calculates with a text where order=rows"):
        parse_restriction("order < 3").holds(GIVEN)
    with pytest.raises(UsageError, match="calculates with a text"):
        parse_restriction("order * 3 == 9").holds(GIVEN)
