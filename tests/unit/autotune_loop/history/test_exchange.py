"""A history as a file for others."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.autotune_loop.history import exchange
from halide_autotune.autotune_loop.history.exchange import export_schedules, read_exported
from halide_autotune.targets.errors import HistoryError
from tests.known_schedules import INLINED, known


def test_what_is_exported_is_read_again_with_other_names_for_devices(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl.gz"
    moment_s = 1_795_000_123.5
    schedules = [
        known(ms, INLINED, device=device, at_unix_s=moment_s)
        for ms, device in ((1.0, "kitchen"), (2.0, "attic"), (3.0, "kitchen"))
    ]
    assert export_schedules(schedules, {}, file, "salt") == 3
    first, second, third = (one.schedule for one in read_exported(file))
    assert [one.time_ms for one in (first, second, third)] == [1.0, 2.0, 3.0] and first.schedule == INLINED
    assert first.device == third.device != second.device
    assert first.at_unix_s == moment_s // 86_400 * 86_400, "when somebody worked is nobody's business"
    assert not any(word in gzip.decompress(file.read_bytes()) for word in (b"kitchen", b"attic", b"salt"))
    export_schedules(schedules, {}, file, "another salt")
    assert {one.schedule.device for one in read_exported(file)}.isdisjoint({first.device, second.device})


def test_what_was_merged_comes_back_as_it_was(tmp_path: Path) -> None:
    export_schedules([known(1.0, INLINED)], {}, tmp_path / "mine", "my salt")
    merged = list(read_exported(tmp_path / "mine"))
    export_schedules([one.schedule for one in merged], {}, tmp_path / "theirs", "their salt")
    assert list(read_exported(tmp_path / "theirs")) == merged


def test_ones_own_file_has_ones_own_devices_again(tmp_path: Path) -> None:
    mine, file = known(1.0, INLINED, device="kitchen"), tmp_path / "file"
    export_schedules([mine], {}, file, "salt")
    (one,) = read_exported(file, ["attic", "kitchen"], "salt")
    assert one.schedule.device == "kitchen"
    for others in (("another salt", ["kitchen"]), ("salt", ["attic"])):
        (one,) = read_exported(file, others[1], others[0])
        assert one.schedule.device.startswith("device-")


def test_loop_nests_go_with_their_schedules(tmp_path: Path) -> None:
    mine, file = [known(1.0, INLINED), known(2.0, "")], tmp_path / "file"
    assert mine[0].sha256 != mine[1].sha256
    export_schedules(mine[:1], {mine[0].nest_key: b"nest", ("other", "arm", "nest"): b"x"}, file, "salt")
    assert [one.nest for one in read_exported(file)] == [b"nest"]


def test_a_file_that_unpacks_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "_LARGEST_BYTES", 1_000)
    (tmp_path / "file").write_bytes(packed(lines(FORM, *[GOOD] * 9)))
    with pytest.raises(HistoryError, match="too large"):
        list(read_exported(tmp_path / "file"))


def test_equal_histories_give_equal_files(tmp_path: Path) -> None:
    for name in "ab":
        export_schedules([known(1.0, INLINED)], {}, tmp_path / name, "salt")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def packed(data: bytes) -> bytes:
    """The same bytes for equal data: tests are named by them."""
    return gzip.compress(data, mtime=0)


def lines(*found: object) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in found)


FORM = {"format": "halide-autotune-history", "version": 1}
GOOD = {
    "at_any_size": "0" * 64, "as_timed": "1" * 64, "pipeline": "blur", "conditions": "64x48, 2 threads",
    "halide_target": "x86-64-linux", "device": "d", "clock": "wall", "time_ms": 1.0, "found_by": "sketches",
    "halide_version": "21.0.0", "at_unix_s": 1.0, "schedule": INLINED,
}  # fmt: skip


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"not packed", "not an exported history"),
        (packed(lines(FORM, GOOD))[:-12], "not an exported history"),
        (packed(b""), "is not an exported history"),
        (packed(lines({"format": "else"})), "is not an exported history"),
        (packed(lines({**FORM, "version": 2})), "of this version"),
        (packed(lines(FORM)[:-1]), "ends within a line"),
        (packed(lines(FORM) + b"\xff\n"), "not an exported history"),
        (packed(lines(FORM) + b"{\n"), "not valid JSON"),
        (packed(lines(FORM, {**GOOD, "time_ms": -1.0})), "line 2.*time_ms"),
        (packed(lines(FORM, {**GOOD, "at_any_size": "x"})), "line 2.*SHA-256"),
        (packed(lines(FORM, {"pipeline": "blur"})), "line 2.*is missing"),
        (packed(lines(FORM, GOOD, {**GOOD, "schedule": "rubbish"})), "line 3.*its schedule is damaged"),
        (packed(lines(FORM, {**GOOD, "schedule": "\ud800"})), "line 2.*its schedule is damaged"),
        (packed(lines(FORM, {**GOOD, "at_unix_s": 1e300})), "line 2.*at_unix_s"),
        (packed(lines(FORM, {**GOOD, "nest": "no base64!"})), "line 2.*its loop nest is damaged"),
        (packed(lines(FORM, {**GOOD, "nest": "ü"})), "line 2.*its loop nest is damaged"),
        (packed(lines(FORM, {**GOOD, "nest": 7})), "line 2.*its loop nest is damaged"),
    ],
)
def test_a_wrong_file_is_one_error(tmp_path: Path, data: bytes, said: str) -> None:
    file = tmp_path / "file"
    file.write_bytes(data)
    with pytest.raises(HistoryError, match=said):
        list(read_exported(file))


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="cannot be read"):
        list(read_exported(tmp_path / "missing"))


@given(st.binary(max_size=300))
def test_bytes_of_a_stranger_are_at_most_an_error(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    file = tmp_path_factory.mktemp("strange") / "file"
    file.write_bytes(packed(lines(FORM) + data + b"\n"))
    try:
        list(read_exported(file))
    except HistoryError as error:
        assert "\n" not in error.message
