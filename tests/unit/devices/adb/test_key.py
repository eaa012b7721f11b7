from __future__ import annotations

import base64
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from halide_autotune.devices.adb.key import AdbKey, load_adb_key
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from tests.adb_device.device_key import is_signed, parse_public_key

OWNER = "someone@somewhere"


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("keys") / "new" / "adbkey"
    load_adb_key(made, OWNER)
    return made


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_only_its_owner_can_read_a_new_key(usual_umask: None, tmp_path: Path) -> None:
    key_file = tmp_path / "a" / "b" / "adbkey"
    load_adb_key(key_file, OWNER)
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(key_file.parent.stat().st_mode) == 0o700
    assert sorted(path.name for path in key_file.parent.iterdir()) == ["adbkey", "adbkey.pub"]


def test_a_signature_is_the_public_keys(key_file: Path) -> None:
    key = load_adb_key(key_file, OWNER)
    token = os.urandom(20)
    public = parse_public_key(key.public_key)
    assert is_signed(public, token, key.sign(token))
    assert not is_signed(public, os.urandom(20), key.sign(token))


def test_a_key_stays_the_same(key_file: Path) -> None:
    first, second = load_adb_key(key_file, OWNER), load_adb_key(key_file, OWNER)
    assert first.public_key == second.public_key
    assert first.fingerprint == second.fingerprint
    assert first.public_key.endswith(b" " + OWNER.encode())
    assert key_file.with_name("adbkey.pub").read_bytes().strip() == first.public_key


def test_the_public_file_is_not_needed(key_file: Path, tmp_path: Path) -> None:
    alone = tmp_path / "adbkey"
    alone.write_bytes(key_file.read_bytes())
    (tmp_path / "adbkey.pub").write_text("another key's")
    assert load_adb_key(alone, OWNER).public_key == load_adb_key(key_file, OWNER).public_key


def test_the_fingerprint_has_androids_form(key_file: Path) -> None:
    key = load_adb_key(key_file, OWNER)
    parts = key.fingerprint.split(":")
    assert len(parts) == 16 and all(len(part) == 2 and part == part.upper() for part in parts)
    assert len(base64.b64decode(key.public_key.split()[0])) == 524


def test_the_private_key_is_not_shown(key_file: Path) -> None:
    key = load_adb_key(key_file, OWNER)
    assert "PRIVATE" not in repr(key) and "signer" not in repr(key)


def test_processes_that_make_one_at_once_share_it(tmp_path: Path) -> None:
    key_file = tmp_path / "keys" / "adbkey"
    loaded: list[AdbKey] = []
    threads = [threading.Thread(target=lambda: loaded.append(load_adb_key(key_file, OWNER))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loaded) == 4 and len({key.public_key for key in loaded}) == 1
    assert sorted(path.name for path in key_file.parent.iterdir()) == ["adbkey", "adbkey.pub"]
    assert key_file.with_name("adbkey.pub").read_bytes().strip() == loaded[0].public_key


def elliptic_key() -> bytes:
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


@pytest.mark.parametrize(
    "content",
    [b"", b"nonsense", b"-----BEGIN PRIVATE KEY-----\nAAAA\n", os.urandom(500), bytes(100_000), elliptic_key()],
)
def test_a_file_that_is_no_key_is_explained(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "adbkey").write_bytes(content)
    with pytest.raises(DeviceTrouble, match="is not an RSA key") as caught:
        load_adb_key(tmp_path / "adbkey", OWNER)
    assert caught.value.kind is TroubleKind.REFUSED and str(tmp_path / "adbkey") in str(caught.value)
    assert (tmp_path / "adbkey").read_bytes() == content


def test_a_folder_that_cannot_be_made_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DeviceTrouble, match="cannot be read or made") as caught:
        load_adb_key(tmp_path / "file" / "adbkey", OWNER)
    assert caught.value.kind is TroubleKind.REFUSED
