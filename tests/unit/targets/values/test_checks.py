"""Single values: what passes, and what is said of the rest."""

from __future__ import annotations

import datetime
from enum import Enum
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.targets.values.checks import (
    Check,
    Unfit,
    any_text,
    check_at,
    exactly,
    kind_of,
    list_of,
    matching,
    member_of,
    nearest,
    number,
    one_line,
    one_of,
    optional,
    path,
    plain_value,
    row_of,
    table_of,
    true_or_false,
    whole_number,
    word,
)


class Colour(Enum):
    RED = "red"
    GREEN = "green"


@pytest.mark.parametrize(
    ("check", "value", "held"),
    [
        (any_text, "a\nb", "a\nb"),
        (one_line, "a b", "a b"),
        (word, "a-b", "a-b"),
        (matching("[a-c]+", "letters"), "abc", "abc"),
        (one_of(["a", "b"]), "b", "b"),
        (member_of(Colour), "green", Colour.GREEN),
        (exactly(1), 1, 1),
        (whole_number(), -(10**30), -(10**30)),
        (whole_number(1, 3), 3, 3),
        (number(), 3, 3.0),
        (number(0, 1), 0.5, 0.5),
        (true_or_false, False, False),
        (plain_value, 2.5, 2.5),
        (path, "~/x", Path("~/x")),
        (optional(word), None, None),
        (list_of(word), ["a", "a"], ("a", "a")),
        (row_of(word, whole_number()), ["a", 1], ("a", 1)),
        (table_of(whole_number()), {"b": 1, "a": 2}, {"b": 1, "a": 2}),
    ],
)
def test_what_is_right_is_held(check: Check[object], value: object, held: object) -> None:
    assert check(value) == held
    assert type(check(value)) is type(held)


@pytest.mark.parametrize(
    ("check", "value", "expected"),
    [
        (any_text, 3, "a string, not an integer"),
        (one_line, "a\nb", "1 to 1024 printable characters on one line"),
        (one_line, " ", "on one line"),
        (one_line, "x" * 1025, "on one line"),
        (word, "a b", "without white space, not 'a b'"),
        (matching("[a-c]+", "letters such as abc"), "abd", "letters such as abc, not 'abd'"),
        (matching("[a-c]+", "letters such as abc"), "abc\n", "letters such as abc, not 'abc\\n'"),
        (one_of(["left", "right"]), "rigth", "one of left, right, not 'rigth'; the nearest is 'right'"),
        (one_of(["left", "right"]), "x", "one of left, right, not 'x'"),
        (one_of(["left"]), None, "one of left, not null"),
        (exactly(1), True, "1, not true or false"),
        (exactly("a"), "b", "'a', not 'b'"),
        (whole_number(1, 3), 4, "an integer from 1 to 3, not 4"),
        (whole_number(1), 0, "an integer of at least 1, not 0"),
        (whole_number(1, 3), True, "not true or false"),
        (whole_number(1, 3), 10**4000, "not a number of more than 20 digits"),
        (number(0), -1, "a number of at least 0, not -1"),
        (number(), float("nan"), "a number, not nan"),
        (number(), 10**400, "not a number of more than 20 digits"),
        (true_or_false, 1, "true or false, not an integer"),
        (plain_value, [], "not a list"),
        (plain_value, float("inf"), "a string, a finite number, or true or false, not inf"),
        (list_of(word), "a", "a list, not a string"),
        (list_of(word, most=1), ["a", "b"], "a list of at most 1 items, not 2"),
        (list_of(word, distinct=True), ["a", "b", "a"], "'a' is in it twice"),
        (row_of(word, word), ["a"], "a list of 2 items, not of 1"),
        (row_of(word, word), "ab", "a list of 2 items, not a string"),
        (table_of(word), [1], "a table, not a list"),
        (table_of(word, most=0), {"a": "b"}, "a table of at most 0 keys, not 1"),
        (table_of(word, names=matching("[A-Z]+", "capitals")), {"a": "b"}, "capitals, not 'a'"),
    ],
)
def test_what_is_wrong_is_said(check: Check[object], value: object, expected: str) -> None:
    with pytest.raises(Unfit) as caught:
        check(value)
    sentence = caught.value.message("FILE")
    assert sentence.startswith("FILE: it must be ") and sentence.endswith(".")
    assert expected in sentence


def test_the_key_is_the_whole_way_to_the_value() -> None:
    with pytest.raises(Unfit) as caught:
        check_at("a b", table_of(list_of(list_of(word))), {"x": [["y"], ["z", 3]]})
    assert caught.value.message("FILE") == "FILE: key '\"a b\".x[1][1]' must be a string, not an integer."


def test_kinds_have_tomls_words() -> None:
    values = ["", 1, True, 1.5, [], {}, datetime.date(2026, 1, 2), None]
    words = "a string,an integer,true or false,a float,a list,a table,a date or time,null".split(",")
    assert [kind_of(value) for value in values] == words


def test_the_nearest_word() -> None:
    assert nearest("arm46", ["x86-64", "arm64"]) == "arm64"
    assert nearest("y", ["x86-64", "arm64"]) is None


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(ANYTHING)
def test_every_refusal_is_one_line(value: object) -> None:
    checks = (one_of("a"), whole_number(5, 6), number(5, 6), word, plain_value, table_of(word), list_of(word))
    for check in checks:
        try:
            check_at("key", check, value)
        except Unfit as error:
            assert "\n" not in error.message("FILE")
