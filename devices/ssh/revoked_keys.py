"""Whether a host key is in a file of revoked ones, OpenSSH's RevokedHostKeys."""

from __future__ import annotations

import base64
import binascii
import tempfile
from pathlib import Path

from halide_autotune.devices.ssh.config import refused
from halide_autotune.targets.process.limited_process import ProcessLimits, run_limited

# A key revocation list (OpenSSH's PROTOCOL.krl) begins so; any other file has a public key a line.
_BINARY = b"SSHKRL\n\0"
_LIMITS = ProcessLimits(time_s=60.0, memory_bytes=2 * 2**30)
_NEXT_STEP = "Correct RevokedHostKeys in the SSH configuration, or the file."


def is_revoked(file: Path, key_type: str, blob: bytes, keygen: Path | None) -> bool:
    """Whether a file revokes a key.

    Args:
        blob: the public key as SSH sends it.
        keygen: OpenSSH's ssh-keygen, which reads binary lists; None where it is not installed.

    Raises:
        DeviceTrouble: it cannot be told, so that the key is not trusted either, as for ssh (REFUSED).
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise refused(f"The revoked host keys cannot be read: {error.strerror} ({file}).", _NEXT_STEP) from error
    if content.startswith(_BINARY):
        return _is_in_list(file, key_type, blob, keygen)
    return any(_blob_of(line) == blob for line in content.splitlines())


def _blob_of(line: bytes) -> bytes | None:
    words = line.split()
    try:
        return base64.b64decode(words[1], validate=True)
    except (IndexError, binascii.Error):
        return None


def _is_in_list(file: Path, key_type: str, blob: bytes, keygen: Path | None) -> bool:
    if keygen is None:
        raise refused(
            f"{file} is a binary list of revoked host keys, which only OpenSSH's ssh-keygen reads.",
            "Install OpenSSH's client (ssh and ssh-keygen).",
        )
    with tempfile.NamedTemporaryFile("w", prefix="host-key-", suffix=".pub") as key:
        key.write(f"{key_type} {base64.b64encode(blob).decode()}\n")
        key.flush()
        try:
            outcome = run_limited([str(keygen), "-Q", "-f", str(file), key.name], _LIMITS)
        except OSError as error:
            raise refused(f"{keygen} cannot be started: {error.strerror}.", "Install OpenSSH's client.") from error
    if outcome.succeeded:
        return False
    if outcome.log.rstrip().endswith("REVOKED"):
        return True
    raise refused(f"{keygen} cannot read the revoked host keys in {file}: {outcome.log.strip()[:300]}.", _NEXT_STEP)
