"""One service's stream of bytes, seen from the device."""

from __future__ import annotations

import threading
from collections import deque
from typing import Protocol


class SendsPackets(Protocol):
    """What a stream needs of its connection."""

    max_payload_bytes: int

    def send(self, command: bytes, argument0: int, argument1: int, payload: bytes = b"") -> None: ...


class DeviceStream:
    """Bytes from and to the client, with ADB's flow control: one unacknowledged packet in each direction.

    Every method raises ConnectionError when the client has closed the stream or the connection is gone.

    Attributes:
        their_number: the client's for it.
        closed: the client has closed it, or the connection is gone.
    """

    def __init__(self, connection: SendsPackets, number: int, their_number: int) -> None:
        self._connection = connection
        self._number = number
        self.their_number = their_number
        self._changed = threading.Condition()
        self._incoming: deque[bytes] = deque()
        self._acknowledged = True
        self._rest = b""
        self.closed = False

    def take(self, payload: bytes) -> None:
        """The connection has read a WRTE."""
        with self._changed:
            if not self.closed:
                self._incoming.append(payload)
                self._changed.notify_all()

    def acknowledge(self) -> None:
        """The connection has read an OKAY."""
        with self._changed:
            self._acknowledged = True
            self._changed.notify_all()

    def hang_up(self) -> None:
        """The connection has read a CLSE, or is gone."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def read_some(self) -> bytes:
        """What the client has sent; waits for it."""
        if self._rest:
            data, self._rest = self._rest, b""
            return data
        with self._changed:
            self._changed.wait_for(lambda: self._incoming or self.closed)
            if not self._incoming:
                raise ConnectionError("the client closed the stream")
            data = self._incoming.popleft()
        self._connection.send(b"OKAY", self._number, self.their_number)
        return data

    def read(self, size_bytes: int) -> bytes:
        """Exactly `size_bytes` bytes of the client's."""
        data = bytearray()
        while len(data) < size_bytes:
            data += self.read_some()
        self._rest = bytes(data[size_bytes:]) + self._rest
        return bytes(data[:size_bytes])

    def write(self, data: bytes) -> None:
        """Send all of `data`; returns once the client has acknowledged it."""
        size_bytes = self._connection.max_payload_bytes
        for start in range(0, len(data), size_bytes):
            with self._changed:
                if self.closed:
                    raise ConnectionError("the client closed the stream")
                self._acknowledged = False
            self._connection.send(b"WRTE", self._number, self.their_number, data[start : start + size_bytes])
            with self._changed:
                self._changed.wait_for(lambda: self._acknowledged or self.closed)
