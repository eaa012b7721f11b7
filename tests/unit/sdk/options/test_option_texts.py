"""The values of options that have a syntax of their own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.sdk.options.autotune_options import parse_argument_sets
from halide_autotune.sdk.project.run_folders import newest_run_folder
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.generator.reference import GeneratorKind, GeneratorReference
from halide_autotune.targets.values.texts import parse_memory_bytes, parse_scalars, parse_sizes
from tests.run_specs import make_record, make_spec, make_task

_KEYS = st.from_regex(r"[a-z]{1,6}", fullmatch=True)
_LETTERS = st.characters(codec="ascii", categories=("L", "N", "P", "S"), exclude_characters=";=")
_VALUES = st.text(_LETTERS, min_size=1, max_size=8)


@given(st.lists(st.dictionaries(_KEYS, _VALUES, min_size=1, max_size=4), min_size=1, max_size=5))
def test_argument_sets_come_back_as_they_were_written(sets: list[dict[str, str]]) -> None:
    distinct = [values for index, values in enumerate(sets) if values not in sets[:index]]
    items = tuple(tuple(f"{key}={value}" for key, value in values.items()) for values in distinct)
    keys = {key for values in distinct for key in values}
    if keys & {"target", "autoscheduler"}:
        return
    assert parse_argument_sets(" ".join(";".join(part) for part in items)) == items


@given(st.text(max_size=40))
def test_any_text_is_sets_or_one_message(text: str) -> None:
    try:
        assert all(parse_argument_sets(text))
    except UsageError as error:
        assert "--generator-arg-sets" in str(error)


def test_a_semicolon_at_the_end_is_harmless() -> None:
    assert parse_argument_sets(" a=1;b=2;  a=3 ") == (("a=1", "b=2"), ("a=3",))


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("4G", 4 * 2**30), ("512m", 512 * 2**20), ("1.5GiB", 3 * 2**29), ("64KB", 65536), (" 1000 ", 1000)],
)
def test_amounts_of_memory(text: str, size_bytes: int) -> None:
    assert parse_memory_bytes(text) == size_bytes


@pytest.mark.parametrize("text", ["", "G", "-4G", "4 G", "0", "1e3", "4X", "nan"])
def test_no_amounts_of_memory(text: str) -> None:
    with pytest.raises(UsageError, match="is not an amount of memory"):
        parse_memory_bytes(text)


@given(st.text(max_size=20))
def test_any_text_is_a_kernel_argument_or_one_message(text: str) -> None:
    for parse in (parse_sizes, parse_scalars):
        try:
            parsed = parse([text])
        except UsageError:
            continue
        assert [f"{name}={value}" for name, value in parsed.items()] == [text]


@pytest.mark.parametrize("value", ["1", "-2", "+0.5", "1e-3", "inf", "nan", "true", "false"])
def test_scalars(value: str) -> None:
    assert parse_scalars([f"x={value}"]) == {"x": value}


@pytest.mark.parametrize("value", ["1_000", " 1", "True", "0x10", "1,5"])
def test_no_scalars(value: str) -> None:
    with pytest.raises(UsageError, match="is not a value"):
        parse_scalars([f"x={value}"])


def test_the_newest_run_is_the_last_that_was_begun_or_resumed(tmp_path: Path) -> None:
    runs = [("blur", "arm64"), ("blur", "x86-64"), ("harris", "arm64"), ("blur", "arm64"), ("harris", "x86-64")]
    for number, (generator, target) in enumerate(runs):
        folder = tmp_path / "tuned" / str(9 - number)
        folder.mkdir(parents=True)
        make_record(make_spec(make_task(generator), profile=target)).write(folder)
        os.utime(folder / "run.toml", (number, number))
    (tmp_path / "tuned" / "old").mkdir()
    (tmp_path / "tuned" / "old" / "run.toml").write_text("")  # of another version, or damaged
    (tmp_path / "tuned" / "empty").mkdir()  # was given up before it held anything

    def newest(generator: str, target: str | None, name: str | None = None) -> str:
        wanted = GeneratorReference(Path(f"/src/{generator}.py"), GeneratorKind.PYTHON, name)
        return newest_run_folder(tmp_path, [wanted], target).name

    assert [newest("blur", None), newest("blur", "x86-64"), newest("harris", "arm64", "harris")] == ["6", "8", "7"]
    assert newest_run_folder(tmp_path, [], "arm64").name == "6"
    with pytest.raises(UsageError, match="there is no run of harris.py for cuda"):
        newest("harris", "cuda")
    with pytest.raises(UsageError, match="there is no run of blur.py in"):
        newest("blur", None, "another")
