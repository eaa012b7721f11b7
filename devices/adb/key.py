"""The RSA key that a user allows on an Android device."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind

_MAX_KEY_BYTES = 64 * 1024


@dataclass(frozen=True)
class AdbKey:
    """A key of 2048 bits, as adb's own.

    Attributes:
        public_key: in Android's format, base64, followed by the owner's name.
        fingerprint: as the device shows it when it asks.
    """

    public_key: bytes
    fingerprint: str
    _signer: Any = field(repr=False)

    def sign(self, token: bytes) -> bytes:
        """Return the signature of a device's 20-byte token."""
        signature: bytes = self._signer.Sign(token)
        return signature


def load_adb_key(key_file: Path, owner: str) -> AdbKey:
    """Return the key in `key_file`; if there is none, make it with its `.pub`.

    Args:
        owner: user@host, shown in the device's list of allowed keys.

    Raises:
        DeviceTrouble: REFUSED, the file cannot be made, or is not such a key.
    """
    from adb_shell.auth.keygen import encode_pubkey
    from adb_shell.auth.sign_pythonrsa import PythonRSASigner

    try:
        if not key_file.exists():
            _make(key_file, owner)
        if key_file.stat().st_size > _MAX_KEY_BYTES:
            raise ValueError("too big")
        private_key = key_file.read_text(encoding="ascii")
        # Computed, because a `.pub` beside it may be missing, or another key's.
        public_key: bytes = encode_pubkey(str(key_file))
        signer = PythonRSASigner(pub=None, priv=private_key)
    except OSError as error:
        message = f"The ADB key {key_file} cannot be read or made: {error.strerror or error}."
        raise DeviceTrouble(
            TroubleKind.REFUSED, message, next_step="Check the owner of the file and its folder."
        ) from error
    except Exception as error:  # what a damaged file raises depends on where it is damaged
        message = f"The ADB key {key_file} is not an RSA key of adb's kind (2048 bits, PKCS#8, no passphrase)."
        advice = "Delete it: the SDK makes a new one, which each device asks its user to allow."
        raise DeviceTrouble(TroubleKind.REFUSED, message, next_step=advice) from error
    digest = hashlib.md5(public_key, usedforsecurity=False).hexdigest().upper()
    fingerprint = ":".join(digest[start : start + 2] for start in range(0, len(digest), 2))
    return AdbKey(_public_line(public_key, owner), fingerprint, signer)


def _public_line(public_key: bytes, owner: str) -> bytes:
    return base64.b64encode(public_key) + b" " + "_".join(owner.split()).encode("utf-8", "replace")


def _make(key_file: Path, owner: str) -> None:
    """Make a key. When several processes do so at once, all use the first one's."""
    from adb_shell.auth.keygen import encode_pubkey, keygen

    key_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=key_file.parent, prefix=f".{key_file.name}.") as folder:
        made = Path(folder) / "key"
        keygen(str(made))
        made.chmod(0o600)
        public = Path(folder) / "public"
        public.write_bytes(_public_line(encode_pubkey(str(made)), owner) + b"\n")
        try:
            os.link(made, key_file)  # unlike a rename, never replaces another process's
        except FileExistsError:
            return
        with contextlib.suppress(OSError):  # only adb itself reads it
            public.replace(key_file.with_name(key_file.name + ".pub"))
