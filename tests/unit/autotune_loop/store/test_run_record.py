"""`run.toml` says what it was told, whatever characters that has."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from autotune_loop.store.run_record import FILE_NAME, RunRecord, differences, read_run_record
from targets.errors import RunFolderError

TEXTS = st.text(max_size=30)
TABLES = st.dictionaries(TEXTS, TEXTS, max_size=5)


@given(TABLES, TABLES)
@example({"": "", '"': '"', "\\": "\\", "a.b": "c.d", "[x]": "# no comment"}, {"\n": "\r\n", "\x7f": "\x00\x1b"})
@example({"face": "\U0001f600", "line": "\u2028"}, {"'''": '"""'})
def test_what_is_written_reads_back(identity: dict[str, str], settings: dict[str, str]) -> None:
    record = RunRecord(identity, settings)
    with tempfile.TemporaryDirectory() as folder:
        record.write(Path(folder))
        assert read_run_record(Path(folder)) == record
    assert differences(record, record) == []


def test_text_that_is_none_is_written_in_a_readable_form(tmp_path: Path) -> None:
    RunRecord({"generator": "bl\udcffur"}, {}).write(tmp_path)
    assert read_run_record(tmp_path).identity == {"generator": "bl\\udcffur"}


@given(st.binary(max_size=200))
def test_any_file_is_a_record_or_damaged(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / FILE_NAME).write_bytes(content)
        try:
            read_run_record(Path(folder))
        except RunFolderError as error:
            assert FILE_NAME in str(error)


@given(TABLES, TABLES)
def test_differences_name_the_keys_that_differ(old: dict[str, str], new: dict[str, str]) -> None:
    lines = differences(RunRecord(old, {}), RunRecord(new, {"other": "settings"}))
    assert len(lines) == sum(old.get(key) != new.get(key) for key in {*old, *new})


def test_a_folder_without_a_record_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"is not a run folder: it has no run\.toml"):
        read_run_record(tmp_path)


def test_a_folder_that_is_gone_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"run\.toml cannot be written: No such file"):
        RunRecord({}, {}).write(tmp_path / "gone")
