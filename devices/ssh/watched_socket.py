"""A socket that gives up on a peer that says nothing more."""

from __future__ import annotations

import contextlib
import errno
import time
from typing import Any


class WatchedSocket:
    """What paramiko reads and writes through: a socket, or a channel of a jump host's connection.

    paramiko itself tries for ever to write to a peer that takes nothing, and never asks for a sign of life.

    Args:
        inner: the socket or channel, which it owns.
        patience_s: how long a peer may take no byte, or owe an answer.
    """

    def __init__(self, inner: Any, patience_s: float) -> None:
        self._inner = inner
        self._patience_s = patience_s
        self._heard_at_s = time.monotonic()
        self._asked_at_s: float | None = None
        self._stuck_since_s: float | None = None
        self.gave_up = False

    @property
    def quiet_s(self) -> float:
        """How long ago the peer was last heard."""
        return time.monotonic() - self._heard_at_s

    def expect_answer(self) -> None:
        """The peer is being asked for a sign of life: any byte from now on will do."""
        if self._asked_at_s is None:
            self._asked_at_s = time.monotonic()

    def recv(self, size: int) -> bytes:
        """See `socket.recv`."""
        try:
            data: bytes = self._inner.recv(size)
        except TimeoutError:
            self._give_up_after(self._asked_at_s)
            raise
        self._heard_at_s = time.monotonic()
        self._asked_at_s = None
        return data

    def send(self, data: bytes) -> int:
        """See `socket.send`."""
        try:
            sent: int = self._inner.send(data)
        except TimeoutError:
            if self._stuck_since_s is None:
                self._stuck_since_s = time.monotonic()
            self._give_up_after(self._stuck_since_s)
            raise
        self._stuck_since_s = None
        return sent

    def settimeout(self, timeout_s: float | None) -> None:
        """See `socket.settimeout`."""
        self._inner.settimeout(timeout_s)

    def close(self) -> None:
        """Let go of it; quiet even where a jump host can no longer be told, as paramiko's thread would die of it."""
        with contextlib.suppress(Exception):
            self._inner.close()

    @property
    def _closed(self) -> bool:
        # paramiko looks at this to know whether waiting for its own thread has an end.
        return bool(self._inner._closed)

    def _give_up_after(self, since_s: float | None) -> None:
        if since_s is not None and time.monotonic() - since_s > self._patience_s:
            self.gave_up = True
            raise ConnectionAbortedError(errno.ECONNABORTED, "the peer is silent")
