"""Secrets of leases taken by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from devices.lease.token import LeaseToken, forget_token, keep_token, new_token, read_token
from devices.remote_place import RemotePlace, SshAddress

PLACE = RemotePlace(SshAddress("board"))


def test_a_token_is_kept_for_its_slot_and_for_this_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "config" / "leases"
    lease = LeaseToken(new_token(), 7200.0)
    keep_token(folder, PLACE, lease)
    assert read_token(folder, PLACE) == lease
    assert read_token(folder, RemotePlace(SshAddress("board"), slot=1)) is None
    assert [file.stat().st_mode & 0o777 for file in folder.iterdir()] == [0o600]
    assert folder.stat().st_mode & 0o777 == 0o700
    forget_token(folder, PLACE)
    forget_token(folder, PLACE)
    assert read_token(folder, PLACE) is None


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
        '{"token": "../../x", "ttl_s": 1}',
        '{"token": 3, "ttl_s": 1}',
        '{"token": "abababababababababababababababab", "ttl_s": NaN}',
        '{"token": "abababababababababababababababab", "ttl_s": true}',
    ],
)
def test_a_damaged_file_is_no_token(tmp_path: Path, content: str) -> None:
    keep_token(tmp_path, PLACE, LeaseToken(new_token(), 1.0))
    next(tmp_path.iterdir()).write_text(content)
    assert read_token(tmp_path, PLACE) is None
