"""`run.toml` says what it was told, whatever characters that has."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.store.run_record import FILE_NAME, differences, read_run_record
from halide_autotune.targets.errors import RunFolderError
from halide_autotune.targets.values.options import options_of, with_values
from tests.option_values import option_values
from tests.run_specs import make_record, make_spec, make_task

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
TABLES = st.dictionaries(TEXTS, TEXTS, max_size=5)
OPTIONS = st.fixed_dictionaries({}, optional={o.keyword: option_values(o) for o in options_of(RunOptions)})


@given(TABLES, OPTIONS, TEXTS)
@example({"": "", '"': '"', "\\": "\\", "a.b": "c.d", "[x]": "# no comment"}, {}, "\n\x7f\x00\x1b\r\n")
@example({"face": "\U0001f600", "line": "\u2028"}, {}, "'''")
def test_what_is_written_reads_back(parameters: dict[str, str], values: dict[str, object], toolchain: str) -> None:
    options = with_values(RunOptions(), values)
    record = make_record(make_spec(make_task(parameters=parameters), options=options), toolchain=toolchain)
    with tempfile.TemporaryDirectory() as folder:
        record.write(Path(folder))
        assert read_run_record(Path(folder)) == record
    assert differences(record, record) == []


@pytest.mark.parametrize("profile", ["arm64", "cuda-sm80", "hexagon-v66", "arm64-android"])
def test_every_kind_of_profile_reads_back(profile: str, tmp_path: Path) -> None:
    record = make_record(make_spec(profile=profile))
    record.write(tmp_path)
    assert read_run_record(tmp_path) == record


def test_text_that_is_none_is_written_in_a_readable_form(tmp_path: Path) -> None:
    make_record(make_spec(make_task(parameters={"name": "bl\udcffur"}))).write(tmp_path)
    assert read_run_record(tmp_path).spec.tasks[0].parameters == {"name": "bl\\udcffur"}


@given(st.binary(max_size=200))
def test_any_file_is_a_record_or_damaged(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / FILE_NAME).write_bytes(content)
        try:
            read_run_record(Path(folder))
        except RunFolderError as error:
            assert FILE_NAME in str(error)


@given(OPTIONS, OPTIONS)
def test_differences_name_what_is_tuned_otherwise(old: dict[str, object], new: dict[str, object]) -> None:
    was, now = (make_record(make_spec(options=with_values(RunOptions(), values))) for values in (old, new))
    fixed = [o for o in options_of(RunOptions) if o.facts.is_fixed and o.path[0] != "devices"]
    read = {o.keyword: [o.read(each.get(o.keyword, o.default)) for each in (old, new)] for o in fixed}
    lines = differences(was, now)
    assert [line.split(":")[0].strip() for line in lines] == [key for key, (a, b) in read.items() if a != b]


def test_differences_name_the_generator_that_has_changed() -> None:
    tasks = [make_task("blur"), make_task("harris")]
    old, new = (make_record(make_spec(*tasks), generator_sha256=("a" * 64, last * 64)) for last in "bc")
    (line,) = differences(old, new)
    assert line.startswith("  generator harris: /") and line.endswith(
        "or a file that it is made from, has changed (sha256 bbbbbbbbbbbb, now cccccccccccc)"
    )


def test_differences_name_what_the_run_was_made_with() -> None:
    old = make_record()
    assert len(differences(old, make_record(halide_version="22", clock="emulated", devices=("three",)))) == 2
    other = replace(old.spec, parallelism=9, tasks=(make_task("harris"),))
    assert len(differences(old, replace(old, spec=other))) == 2


def test_a_folder_without_a_record_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"is not a run folder: it has no run\.toml"):
        read_run_record(tmp_path)


def test_a_folder_that_is_gone_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"run\.toml cannot be written: No such file"):
        make_record().write(tmp_path / "gone")
