"""A history as a file for others."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.autotune_loop.history.exchange import export_schedules, read_exported
from halide_autotune.targets.errors import HistoryError
from tests.known_schedules import known


def test_what_is_exported_is_read_again_with_other_names_for_devices(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl.gz"
    schedules = [known(1.0, device="kitchen"), known(2.0, device="attic"), known(3.0, device="kitchen")]
    assert export_schedules(schedules, file, "salt") == 3
    first, second, third = read_exported(file)
    assert [one.time_ms for one in (first, second, third)] == [1.0, 2.0, 3.0] and first.schedule == known(1.0).schedule
    assert first.device == third.device != second.device
    assert not any(word in gzip.decompress(file.read_bytes()) for word in (b"kitchen", b"attic", b"salt"))
    export_schedules(schedules, file, "another salt")
    assert {one.device for one in read_exported(file)}.isdisjoint({first.device, second.device})


def test_equal_histories_give_equal_files(tmp_path: Path) -> None:
    for name in "ab":
        export_schedules([known(1.0)], tmp_path / name, "salt")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def lines(*found: object) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in found)


FORM = {"format": "halide-autotune-history", "version": 1}
GOOD = {
    "at_any_size": "0" * 64, "at_its_size": "1" * 64, "pipeline": "blur", "size": "64x48",
    "halide_target": "x86-64-linux", "device": "d", "clock": "wall", "time_ms": 1.0, "found_by": "sketches",
    "halide_version": "21.0.0", "at_unix_s": 1.0, "schedule": "{}",
}  # fmt: skip


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"not packed", "not an exported history"),
        (gzip.compress(lines(FORM, GOOD))[:-12], "not an exported history"),
        (gzip.compress(b""), None),
        (gzip.compress(lines({"format": "else"})), "first line"),
        (gzip.compress(lines({**FORM, "version": 2})), "of this version"),
        (gzip.compress(lines(FORM)[:-1]), "ends within a line"),
        (gzip.compress(lines(FORM) + b"\xff\n"), "not an exported history"),
        (gzip.compress(lines(FORM) + b"{\n"), "not valid JSON"),
        (gzip.compress(lines(FORM, {**GOOD, "time_ms": -1.0})), "line 2.*time_ms"),
        (gzip.compress(lines(FORM, {**GOOD, "at_any_size": "x"})), "line 2.*SHA-256"),
        (gzip.compress(lines(FORM, {"pipeline": "blur"})), "line 2.*is missing"),
    ],
)
def test_a_wrong_file_is_one_error(tmp_path: Path, data: bytes, said: str | None) -> None:
    file = tmp_path / "file"
    file.write_bytes(data)
    if said is None:
        assert list(read_exported(file)) == []
        return
    with pytest.raises(HistoryError, match=said):
        list(read_exported(file))


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="cannot be read"):
        list(read_exported(tmp_path / "missing"))


@given(st.binary(max_size=300))
def test_bytes_of_a_stranger_are_at_most_an_error(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    file = tmp_path_factory.mktemp("strange") / "file"
    file.write_bytes(gzip.compress(lines(FORM) + data + b"\n"))
    try:
        list(read_exported(file))
    except HistoryError as error:
        assert "\n" not in error.message
