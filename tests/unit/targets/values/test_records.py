"""Tables read into dataclasses, and written so that they are read again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.targets.errors import ProfileError, UsageError, WeightsError
from halide_autotune.targets.values.checks import Unfit, one_line, optional, whole_number
from halide_autotune.targets.values.records import Example, Source, part_of, plain, record, toml_text


class Clock(Enum):
    WALL = "wall"
    CYCLES = "cycles"


def even(value: object) -> int:
    number = whole_number()(value)
    if number % 2:
        raise Unfit("an even number", str(number))
    return number


def refused(value: object) -> str:
    raise UsageError("This is never right.", next_step="Leave it out.")


@dataclass(frozen=True)
class Limits:
    time_s: float
    tries: Annotated[int, whole_number(1, 9)] = 3


@dataclass(frozen=True)
class Server:
    address: Annotated[str, one_line, Example('address = "pi@board"')]
    clock: Clock
    limits: Limits
    kind: Literal["ssh", "adb"] = "ssh"
    pairs: Annotated[int | None, even] = None
    size: tuple[int, float] = (1, 1.0)
    labels: tuple[str, ...] = ()
    folders: Mapping[str, Path] = field(default_factory=dict)
    others: tuple[Limits, ...] = ()
    secret: Annotated[str | None, refused] = None
    made: str = field(default="here", init=False)


GOOD = """
address = "board"
clock = "wall"
pairs = 4
labels = ["a", "b"]
[limits]
time_s = 2
[folders]
out = "/x"
[[others]]
time_s = 1.5
tries = 1
"""
SERVER = Server(
    "board",
    Clock.WALL,
    Limits(2.0),
    pairs=4,
    labels=("a", "b"),
    folders={"out": Path("/x")},
    others=(Limits(1.5, 1),),
)
SOURCE = Source("FILE", ProfileError, next_step="Correct the file.")


def read(text: str) -> Server:
    return SOURCE.check(record(Server), SOURCE.toml(text))


def test_a_table_becomes_a_record_and_a_table_again() -> None:
    assert read(GOOD) == SERVER
    assert read(toml_text(plain(SERVER), comment="A server.")) == SERVER
    assert SOURCE.check(record(Server), SOURCE.json(json.dumps(plain(SERVER)))) == SERVER


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (('address = "board"', ""), "the key 'address' is missing; expected address = \"pi@board\"."),
        (('clock = "wall"', ""), "the key 'clock' is missing; expected one of wall, cycles."),
        (("time_s = 2", ""), "the key 'limits.time_s' is missing; expected a number."),
        (("[limits]\ntime_s = 2", ""), "the key 'limits.time_s' is missing; expected a number."),
        (('"wall"', '"wal"'), "key 'clock' must be one of wall, cycles, not 'wal'; the nearest is 'wall'."),
        (("time_s = 2", "time_s = 2\ntries = 0"), "key 'limits.tries' must be an integer from 1 to 9, not 0."),
        (("tries = 1", "tires = 1"), "unknown key 'others[0].tires'; the nearest is 'others[0].tries'."),
        (("pairs", "tries"), "unknown key 'tries'; the nearest is 'limits.tries'."),
        (("pairs", "qqqq"), "unknown key 'qqqq'; expected one of address, clock"),
        (("pairs", '"a\\nb"'), "unknown key '\"a\\nb\"'; expected one of"),
        (("pairs = 4", "pairs = 3"), "key 'pairs' must be an even number, not 3."),
        (("pairs = 4", "limits = 4"), "not valid TOML"),
        (("pairs = 4", 'made = "x"'), "unknown key 'made'"),
        (('"b"]', "3]"), "key 'labels[1]' must be a string, not an integer."),
        (('"/x"', "3"), "key 'folders.out' must be a string, not an integer."),
        (("pairs = 4", 'secret = "x"'), "key 'secret': This is never right."),
    ],
)
def test_refusals_name_the_key_and_what_is_expected(change: tuple[str, str], expected: str) -> None:
    assert change[0] in GOOD
    with pytest.raises(ProfileError) as caught:
        read(GOOD.replace(*change))
    assert caught.value.message.startswith("FILE: " + expected)
    assert caught.value.next_step == ("Leave it out." if "secret" in expected else "Correct the file.")


def test_null_is_none_where_a_field_may_be_none() -> None:
    fields = plain(SERVER) | {"pairs": None}
    assert SOURCE.check(record(Server), fields) == replace(SERVER, pairs=None)
    with pytest.raises(ProfileError, match="'kind' must be one of ssh, adb, not null"):
        SOURCE.check(record(Server), fields | {"kind": None})


def test_keys_of_another_version_are_left_out_where_that_is_asked() -> None:
    fields = plain(SERVER) | {"newer": 1, "limits": {"time_s": 2, "newer": {}}}
    assert SOURCE.check(record(Server, passes_unknown=True), fields) == SERVER
    with pytest.raises(ProfileError, match="unknown key 'limits.newer'"):
        SOURCE.check(record(Server), fields)


def test_a_part_of_a_table_is_checked_without_what_it_lacks() -> None:
    part = {"limits": {"tries": 2}, "labels": ["a"]}
    assert SOURCE.check(part_of(Server), part) is part
    with pytest.raises(ProfileError, match="'limits.tries' must be an integer"):
        SOURCE.check(part_of(Server), {"limits": {"tries": 0}})


def test_values_that_are_no_table() -> None:
    values: tuple[object, ...] = (3, [], None, "x")
    for value in values:
        with pytest.raises(ProfileError, match="^FILE: it must be a table, not "):
            SOURCE.check(record(Server), value)
    assert SOURCE.check(optional(record(Server)), None) is None


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    source = Source(file := tmp_path / "x.toml", WeightsError, "Import it again.")
    for missing in (file, tmp_path / "x.toml" / "y"):
        with pytest.raises(FileNotFoundError):
            source.read(missing)
    file.write_bytes(b"\xef\xbb\xbfa = 1")
    assert source.toml(source.read(file)) == {"a": 1}
    with pytest.raises(FileNotFoundError):
        source.read(file / "y")
    with pytest.raises(WeightsError, match=r"cannot be read \(Is a directory\)\. Import it again\."):
        source.read(tmp_path)
    with pytest.raises(WeightsError, match="more than 3 bytes"):
        source.read(file, most_bytes=3)
    file.write_bytes(b"ab\xff")
    with pytest.raises(WeightsError, match=r"x\.toml: byte 2 is not UTF-8"):
        source.read(file)


@pytest.mark.parametrize("text", ["a = ", "a = " + "[" * 100000, "a = " + "1" * 5000, "[" * 100000, "{", "1" * 5000])
def test_texts_that_are_none(text: str) -> None:
    for parse in (SOURCE.toml, SOURCE.json):
        with pytest.raises(ProfileError, match="^FILE: (not valid|the file is nested)"):
            parse(text)


def test_the_line_of_a_mistake_is_named() -> None:
    with pytest.raises(ProfileError, match="at line 2"):
        SOURCE.toml("a = 1\nb = = 2\n")
    with pytest.raises(ProfileError, match="line 2"):
        SOURCE.json('{"a": 1,\n"b"')


texts = st.text(st.characters(), max_size=10)


@given(st.dictionaries(texts, texts | st.integers(-(2**60), 2**60) | st.none(), max_size=4))
def test_any_text_is_written_as_toml(table: dict[str, object]) -> None:
    expected = {
        key.encode("utf-8", "backslashreplace").decode(): value.encode("utf-8", "backslashreplace").decode()
        if isinstance(value, str)
        else value
        for key, value in table.items()
        if value is not None
    }
    assert SOURCE.toml(toml_text({"table": table}))["table"] == expected


def test_a_type_without_a_check_is_a_mistake_of_the_program() -> None:
    @dataclass(frozen=True)
    class Wrong:
        value: complex

    with pytest.raises(TypeError, match="no check is known"):
        record(Wrong)({})
