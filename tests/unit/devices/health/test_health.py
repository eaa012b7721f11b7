"""The memory of unhealthy devices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.devices.device_trouble import TroubleKind
from halide_autotune.devices.health.health import clear_health, read_health, record_unhealthy
from halide_autotune.devices.remote_place import AdbAddress, SshAddress
from halide_autotune.targets.errors import DeviceError

PI = SshAddress("board", 22, "pi")


def test_a_record_is_kept_and_the_pause_grows(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "health"
    assert read_health(folder, PI) is None
    first = record_unhealthy(folder, PI, "It fell\nsilent \x07.", 1000.0, TroubleKind.TIMEOUT)
    assert read_health(folder, PI) == first
    assert (first.kind, first.message, first.failures) == (TroubleKind.TIMEOUT, "It fell silent .", 1)
    assert (first.since_unix_s, first.next_check_unix_s) == (1000.0, 1060.0)
    second = record_unhealthy(folder, PI, "Again.", 2000.0)
    assert (second.since_unix_s, second.next_check_unix_s, second.failures) == (1000.0, 2120.0, 2)
    for _ in range(20):
        last = record_unhealthy(folder, PI, "Again.", 3000.0)
    assert last.next_check_unix_s == 3000.0 + 3600.0
    clear_health(folder, PI)
    clear_health(folder, PI)
    assert read_health(folder, PI) is None


def test_a_clock_that_is_set_makes_no_pause_longer(tmp_path: Path) -> None:
    first = record_unhealthy(tmp_path, PI, "No.", 100_000.0)
    assert first.is_paused(100_000.0) and first.is_paused(100_059.0) and not first.is_paused(100_060.0)
    assert not first.is_paused(100_030.0 + 3600) and not first.is_paused(100_030.0 - 3600)
    later = [record_unhealthy(tmp_path, PI, "No.", 200_000.0) for _ in range(10)][-1]
    assert later.is_paused(203_599.0) and not later.is_paused(203_600.0)
    assert not later.is_paused(203_000.0 - 2 * 3600)


def test_the_device_counts_and_not_its_name(tmp_path: Path) -> None:
    record_unhealthy(tmp_path, PI, "No.", 1.0)
    assert read_health(tmp_path, SshAddress("board", 22, "pi", identity_file=Path("k"))) is not None
    for other in (SshAddress("board", 22, "pi", jump=("gw",)), SshAddress("board"), AdbAddress("board", 22)):
        assert read_health(tmp_path, other) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("kind", "NONSENSE"),
        ("kind", ["LOST"]),
        ("message", "a\nb"),
        ("message", 3),
        ("message", "x" * 2000),
        ("failures", 0),
        ("failures", True),
        ("since_unix_s", "now"),
        ("since_unix_s", True),
        ("next_check_unix_s", -1),
        ("next_check_unix_s", 1e300),
    ],
)
def test_a_wrong_field_is_no_record(tmp_path: Path, key: str, value: object) -> None:
    record_unhealthy(tmp_path, PI, "No.", 1.0)
    file = next(tmp_path.iterdir())
    file.write_text(json.dumps({**json.loads(file.read_text()), key: value}))
    assert read_health(tmp_path, PI) is None
    assert record_unhealthy(tmp_path, PI, "No.", 5.0).since_unix_s == 5.0


@given(data=st.binary(max_size=200) | st.just(b"[" * 30000) | st.just(b'{"since_unix_s": NaN}' + b" " * 70000))
def test_a_damaged_file_is_no_record(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("health")
    record_unhealthy(folder, PI, "No.", 1.0)
    next(folder.iterdir()).write_bytes(data)
    assert read_health(folder, PI) is None


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DeviceError, match="cannot be written"):
        record_unhealthy(tmp_path / "file" / "health", PI, "No.", 1.0)
