"""Secrets of leases taken by hand."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from halide_autotune.devices.lease.token import LeaseToken, forget_token, keep_token, new_token, read_token
from halide_autotune.devices.remote_place import RemotePlace, SshAddress

PLACE = RemotePlace(SshAddress("board"))


def test_a_token_is_kept_for_its_slot_and_for_this_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "config" / "leases"
    lease = LeaseToken(new_token(), 2e9)
    keep_token(folder, PLACE, lease)
    assert read_token(folder, PLACE) == lease
    assert read_token(folder, RemotePlace(SshAddress("board"), slot=1)) is None
    assert [file.stat().st_mode & 0o777 for file in folder.iterdir()] == [0o600]
    assert folder.stat().st_mode & 0o777 == 0o700
    forget_token(folder, PLACE)
    forget_token(folder, PLACE)
    assert read_token(folder, PLACE) is None


def test_a_lease_lasts_until_its_end() -> None:
    assert 50.0 < LeaseToken(new_token(), time.time() + 60.0).left_s <= 60.0
    assert LeaseToken(new_token(), time.time() - 60.0).left_s == 0.0


def test_a_token_is_never_shown() -> None:
    lease = LeaseToken(new_token(), 1.0)
    assert lease.token not in repr(lease)
    assert new_token() != lease.token


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "[]",
        "[" * 3000,
        '{"token": "../../x", "ends_unix_s": 1}',
        '{"token": 3, "ends_unix_s": 1}',
        '{"token": "abababababababababababababababab", "ends_unix_s": NaN}',
        '{"token": "abababababababababababababababab", "ends_unix_s": true}',
    ],
)
def test_a_damaged_file_is_no_token(tmp_path: Path, content: str) -> None:
    keep_token(tmp_path, PLACE, LeaseToken(new_token(), 1.0))
    next(tmp_path.iterdir()).write_text(content)
    assert read_token(tmp_path, PLACE) is None
