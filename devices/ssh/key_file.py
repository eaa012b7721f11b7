"""Private keys in files."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

_OPEN_TO_OTHERS = 0o077
_LARGEST_FILE_BYTES = 2**16


class UnusableKeyError(Exception):
    """A private key that cannot be used; its text says why, in a few words, and holds no secret."""


def load_key(path: Path, ask_passphrase: Callable[[], str | None]) -> Any:
    """The private key of a file, as a paramiko.PKey.

    Args:
        ask_passphrase: called when the key is encrypted; None when there is no passphrase.

    Raises:
        UnusableKeyError: it is missing, readable by others, of an unknown kind, or the passphrase does not open it.
    """
    _check_file(path)
    try:
        return _read(path, None)
    except TypeError:
        # The cryptography package says so, and in no other case without a passphrase.
        passphrase = ask_passphrase()
    if passphrase is None:
        raise UnusableKeyError("encrypted, and there is no passphrase: add it to the agent with ssh-add")
    return _read(path, passphrase.encode())


def public_blob(path: Path) -> bytes | None:
    """The public key beside a private one, as SSH sends it (or of `path` itself); None when there is none to read."""
    public = path if path.suffix == ".pub" else path.with_name(f"{path.name}.pub")
    try:
        with public.open("rb") as file:
            return base64.b64decode(file.read(_LARGEST_FILE_BYTES).split()[1], validate=True)
    except (OSError, IndexError, binascii.Error, ValueError):
        return None


def _check_file(path: Path) -> None:
    try:
        status = path.stat()
    except OSError as error:
        raise UnusableKeyError((error.strerror or "unreadable").lower()) from error
    if status.st_uid == os.getuid() and status.st_mode & _OPEN_TO_OTHERS:
        raise UnusableKeyError("refused, as others can read it: chmod 600 it")
    if status.st_size > _LARGEST_FILE_BYTES:
        raise UnusableKeyError("too large for a key")


def _read(path: Path, passphrase: bytes | None) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm
    from paramiko import PKey, SSHException
    from paramiko.pkey import UnknownKeyType

    try:
        return PKey.from_path(str(path), passphrase)
    except OSError as error:
        raise UnusableKeyError((error.strerror or "unreadable").lower()) from error
    except (UnknownKeyType, UnsupportedAlgorithm) as error:
        raise UnusableKeyError("of a type that is not supported") from error
    except (SSHException, ValueError, TypeError, LookupError) as error:
        if isinstance(error, TypeError) and passphrase is None:
            raise
        raise UnusableKeyError("not a private key" if passphrase is None else "the passphrase is wrong") from error
