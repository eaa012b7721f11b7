"""A port of the loopback that stays a test's own."""

from __future__ import annotations

import socket


class KeptPort:
    """Bound here as long as this object is kept: a server of ours may listen on it, end, and listen again.

    The kernel hands a port that is only free to other sockets, and to the other end of any connection; while nobody
    listens, this one refuses connections. Servers must set SO_REUSEADDR, as nearly all do.

    Attributes:
        number: the port's.
    """

    def __init__(self, address: str = "127.0.0.1") -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._bound = socket.socket(family)
        self._bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._bound.bind((address, 0))
        self.number: int = self._bound.getsockname()[1]

    def __del__(self) -> None:
        self._bound.close()
