from __future__ import annotations

import base64
import shutil
from pathlib import Path

import pytest

from halide_autotune.devices.ssh.authentication import UnusableKeyError, load_key, public_blob
from tests.sshd_server import make_key

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")


def never() -> str:
    raise AssertionError("no passphrase is needed")


def problem(path: Path, passphrase: str | None = None) -> str:
    with pytest.raises(UnusableKeyError) as caught:
        load_key(path, lambda: passphrase)
    return str(caught.value)


@pytest.mark.parametrize(("key_type", "name"), [("ed25519", "ssh-ed25519"), ("ecdsa", "ecdsa-sha2-nistp256")])
@pytest.mark.parametrize("passphrase", ["", "päss phrase"])
def test_keys_are_read(tmp_path: Path, key_type: str, name: str, passphrase: str) -> None:
    path = make_key(tmp_path / "key", key_type, passphrase)
    key = load_key(path, (lambda: passphrase) if passphrase else never)
    assert key.get_name() == name
    blob = base64.b64decode(path.with_suffix(".pub").read_text().split()[1])
    assert key.asbytes() == blob == public_blob(path) == public_blob(path.with_suffix(".pub"))


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    path = make_key(tmp_path / "key", passphrase="passphrase")
    assert "there is no passphrase" in problem(path)
    assert problem(path, "another") == "the passphrase is wrong"
    assert problem(path, "") == "the passphrase is wrong"
    path.chmod(0o604)
    assert "chmod 600" in problem(path, "passphrase")
    assert problem(tmp_path / "missing") == "no such file or directory"
    assert problem(tmp_path / "key.pub" / "x") == "not a directory"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"text",
        b"\xff" * 100,
        b"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
        b"-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n",
    ],
)
def test_what_is_no_key_is_told(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "key"
    path.write_bytes(data)
    path.chmod(0o600)
    assert problem(path) == "not a private key"
    assert public_blob(path) is None


def test_a_file_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(b"x" * 2**17)
    path.chmod(0o600)
    assert problem(path) == "too large for a key"


def test_a_damaged_public_key_is_none(tmp_path: Path) -> None:
    for text in ("", "ssh-ed25519", "ssh-ed25519 %%%"):
        (tmp_path / "key.pub").write_text(text)
        assert public_blob(tmp_path / "key") is None
