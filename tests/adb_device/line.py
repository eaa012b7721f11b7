"""A device's end of a TCP connection, and what can go wrong with it."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time

_PIECE_BYTES = 16 * 1024


class LineFaults:
    """What is wrong with the lines of one device; changed at any time, from any thread."""

    def __init__(self) -> None:
        self.bytes_per_s: float | None = None
        self.bytes_until_drop: int | None = None
        self.bytes_until_silence: int | None = None
        self._speaks = threading.Event()
        self._speaks.set()

    def silence(self, silent: bool) -> None:
        """Neither read nor write from now on; or go on where it stopped."""
        if silent:
            self._speaks.clear()
        else:
            self._speaks.set()

    def await_turn(self, line: Line) -> None:
        """Wait while the device is silent."""
        while not self._speaks.wait(0.02):
            line.check_open()

    def count(self, size_bytes: int, line: Line) -> None:
        """Take the time that `size_bytes` need; drop the connection, or fall silent, when it has had enough of them."""
        if self.bytes_per_s is not None:
            time.sleep(size_bytes / self.bytes_per_s)
        if self.bytes_until_drop is not None:
            self.bytes_until_drop -= size_bytes
            if self.bytes_until_drop <= 0:
                self.bytes_until_drop = None
                line.close()
        if self.bytes_until_silence is not None:
            self.bytes_until_silence -= size_bytes
            if self.bytes_until_silence <= 0:
                self.bytes_until_silence = None
                self.silence(True)

    @property
    def piece_bytes(self) -> int:
        """How much is moved at once: a fiftieth of a second's worth on a slow line."""
        if self.bytes_per_s is None:
            counts = self.bytes_until_drop is not None or self.bytes_until_silence is not None
            return _PIECE_BYTES if counts else 1024 * 1024
        return max(64, min(_PIECE_BYTES, int(self.bytes_per_s / 50)))


class Line:
    """Whole reads and writes of a connected socket; every failure is a ConnectionError."""

    def __init__(self, connected: socket.socket, faults: LineFaults) -> None:
        self._socket = connected
        self._faults = faults
        self._writing = threading.Lock()
        self._open = True

    def read(self, size_bytes: int) -> bytes:
        """Exactly `size_bytes` bytes."""
        data = bytearray()
        while len(data) < size_bytes:
            self._faults.await_turn(self)
            try:
                piece = self._socket.recv(min(size_bytes - len(data), self._faults.piece_bytes))
            except OSError as error:
                raise ConnectionError(str(error)) from error
            if not piece:
                raise ConnectionError("the client is gone")
            self._faults.count(len(piece), self)
            data += piece
        return bytes(data)

    def write(self, data: bytes) -> None:
        """All of `data`, not mixed with other threads'."""
        rest = memoryview(data)
        with self._writing:
            while rest:
                self._faults.await_turn(self)
                self.check_open()
                piece = rest[: self._faults.piece_bytes]
                try:
                    self._socket.sendall(piece)
                except OSError as error:
                    raise ConnectionError(str(error)) from error
                rest = rest[len(piece) :]
                self._faults.count(len(piece), self)

    def write_garbage(self) -> None:
        """Bytes that are no packet."""
        with contextlib.suppress(ConnectionError):
            self.write(b"\xff" * 24 + os.urandom(1000))

    def check_open(self) -> None:
        """Raise ConnectionError once the line was closed."""
        if not self._open:
            raise ConnectionError("the line was closed")

    def close(self) -> None:
        """Hang up; readers and writers get their ConnectionError."""
        self._open = False
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        """Give the socket back, when no thread uses it any more."""
        self._socket.close()
