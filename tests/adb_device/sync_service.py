"""The file-transfer service, `sync:`."""

from __future__ import annotations

import contextlib
import os
import stat
import struct
from collections.abc import Callable
from pathlib import Path

from tests.adb_device.device_files import DeviceFiles
from tests.adb_device.device_stream import DeviceStream

_HEAD = struct.Struct("<4sI")
_STAT = struct.Struct("<4s3I")
_ENTRY = struct.Struct("<4s4I")
_STAT2 = struct.Struct("<4sI2Q4IQ3q")
_MAX_PATH_BYTES = 1024
_MAX_DATA_BYTES = 64 * 1024


def run_sync(stream: DeviceStream, files: DeviceFiles) -> None:
    """Serve requests until the client quits or hangs up."""
    requests: dict[bytes, Callable[[DeviceStream, DeviceFiles, str], None]] = {
        b"STAT": _stat,
        b"STA2": lambda *given: _stat2(b"STA2", True, *given),
        b"LST2": lambda *given: _stat2(b"LST2", False, *given),
        b"LIST": _list,
        b"SEND": _send,
        b"RECV": _receive,
    }
    with contextlib.suppress(ConnectionError):
        while True:
            kind, size_bytes = _HEAD.unpack(stream.read(_HEAD.size))
            if kind == b"QUIT":
                return
            if kind not in requests or size_bytes > _MAX_PATH_BYTES:
                _fail(stream, "unknown command or path too long")
                return
            requests[kind](stream, files, stream.read(size_bytes).decode())


def _fail(stream: DeviceStream, reason: str) -> None:
    stream.write(_HEAD.pack(b"FAIL", len(reason.encode())) + reason.encode())


def _stat(stream: DeviceStream, files: DeviceFiles, path: str) -> None:
    try:
        found = files.local(path).lstat()
    except OSError:
        stream.write(_STAT.pack(b"STAT", 0, 0, 0))
        return
    stream.write(_STAT.pack(b"STAT", found.st_mode, found.st_size & 0xFFFFFFFF, int(found.st_mtime)))


def _stat2(kind: bytes, follow: bool, stream: DeviceStream, files: DeviceFiles, path: str) -> None:
    try:
        found = files.local(path).stat(follow_symlinks=follow)
    except OSError as error:
        stream.write(_STAT2.pack(kind, error.errno or 5, *[0] * 10))
        return
    owner = (found.st_mode, found.st_nlink, found.st_uid, found.st_gid)
    times = (int(found.st_atime), int(found.st_mtime), int(found.st_ctime))
    stream.write(_STAT2.pack(kind, 0, found.st_dev, found.st_ino, *owner, found.st_size, *times))


def _list(stream: DeviceStream, files: DeviceFiles, path: str) -> None:
    with contextlib.suppress(OSError):
        folder = files.local(path)
        for name in (".", "..", *sorted(os.listdir(folder))):
            found = (folder / name).lstat()
            encoded = name.encode()
            size_bytes = found.st_size & 0xFFFFFFFF
            head = _ENTRY.pack(b"DENT", found.st_mode, size_bytes, int(found.st_mtime), len(encoded))
            stream.write(head + encoded)
    stream.write(_ENTRY.pack(b"DONE", 0, 0, 0, 0))


def _receive(stream: DeviceStream, files: DeviceFiles, path: str) -> None:
    try:
        with files.local(path).open("rb") as file:
            while data := file.read(_MAX_DATA_BYTES):
                stream.write(_HEAD.pack(b"DATA", len(data)) + data)
    except ConnectionError:
        raise
    except OSError as error:
        _fail(stream, f"failed to open file '{path}': {error.strerror}")
        return
    stream.write(_HEAD.pack(b"DONE", 0))


def _send(stream: DeviceStream, files: DeviceFiles, request: str) -> None:
    """As adbd: an old file goes first, folders are made, everybody gets the owner's rights.

    A failure is told at once; what the client still sends is read and dropped until it notices.
    """
    path, _, mode_text = request.rpartition(",")
    failure = ""
    modified_s = 0
    target: Path | None = None
    try:
        mode = int(mode_text)
        if not stat.S_ISREG(mode) and stat.S_IFMT(mode):
            raise OSError(0, "only regular files can be sent here")
        target = files.local(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        failure = f"couldn't create file: {error.strerror}"
        handle = -1
        _fail(stream, failure)
    try:
        while True:
            kind, size_bytes = _HEAD.unpack(stream.read(_HEAD.size))
            if kind == b"DONE":
                modified_s = size_bytes
                break
            if kind != b"DATA" or size_bytes > _MAX_DATA_BYTES:
                raise ConnectionError("the client sent no DATA message")
            data = stream.read(size_bytes)
            if failure:
                continue
            fits_bytes = files.take_space(len(data))
            os.write(handle, data[:fits_bytes])
            if fits_bytes < len(data):
                failure = "write failed: No space left on device"
                assert target is not None
                target.unlink(missing_ok=True)  # before it is told: the client may send the file again at once
                _fail(stream, failure)
    finally:
        if handle >= 0:
            os.close(handle)
    if not failure and target is not None:
        owner_bits = mode & 0o700
        target.chmod(owner_bits | owner_bits >> 3 | owner_bits >> 6)
        os.utime(target, (modified_s, modified_s))
        stream.write(_HEAD.pack(b"OKAY", 0))
