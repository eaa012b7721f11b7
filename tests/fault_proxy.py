"""A TCP proxy on loopback that goes wrong when told to: between any client and a real server."""

from __future__ import annotations

import contextlib
import errno
import math
import select
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import Enum
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import TypeVar

_HELD_BYTES = 256 * 1024
_CHUNK_BYTES = 64 * 1024
_RATE_STEP_S = 0.01
_PATIENCE_S = 120.0
# What waits behind the last byte of a direction.
_END = b""
_RESET = None

_T = TypeVar("_T")


class Direction(Enum):
    """Which way bytes go."""

    TO_SERVER = "to the server"
    TO_CLIENT = "to the client"


class FaultProxy:
    """Hands every connection to `port` on to the server at 127.0.0.1:`target_port`, until a fault is switched on.

    Faults hold for connections that are open and for new ones, and until they are taken back. Methods may be called
    from any thread; what they say is so when they return. Bytes are counted, and faults placed, where the proxy
    passes them on, over all connections together. With nothing switched on the proxy changes no byte.

    Attributes:
        port: where clients connect.
    """

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._listener = _bound_socket(0)
        self.port: int = self._listener.getsockname()[1]
        self._listener.listen()
        self._woken, self._waker = socket.socketpair()
        self._requests: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._connections: list[_Connection] = []
        self._faults = {direction: _Faults() for direction in Direction}
        self._buffer_bytes: int | None = None
        self._segment_bytes: int | None = None
        self._silent = self._refusing = self._closing = False
        self._latency_s = 0.0
        self._accepted = 0
        self._thread = threading.Thread(target=self._serve, name=f"fault-proxy-{self.port}", daemon=True)
        self._thread.start()

    def __enter__(self) -> FaultProxy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Drop what is open and give the port back; nothing is left, neither thread nor socket."""
        if self._thread.is_alive():
            self._ask(lambda: setattr(self, "_closing", True))
        self._thread.join(_PATIENCE_S)
        assert not self._thread.is_alive()
        # Not by the thread: it may have read the last request before its waking call is sent.
        self._woken.close()
        self._waker.close()

    @property
    def connections_accepted(self) -> int:
        """How many clients have connected so far."""
        return self._ask(lambda: self._accepted)

    @property
    def connections_open(self) -> int:
        """How many connections there are now."""
        return self._ask(lambda: len(self._connections))

    def bytes_passed(self, direction: Direction) -> int:
        """How many bytes were handed on in a direction so far."""
        return self._ask(lambda: self._faults[direction].passed_bytes)

    def repoint(self, target_port: int) -> None:
        """New connections go to another server; open ones stay."""
        self._ask(lambda: setattr(self, "_target_port", target_port))

    def drop_all(self, *, reset: bool = True) -> None:
        """Close every connection now, on both sides.

        Args:
            reset: a reset, as of a machine that lost its state; else an orderly end, as of a process that ended.
        """
        self._ask(lambda: self._drop_all(reset))

    def drop_after(self, direction: Direction, byte_count: int, *, reset: bool = True) -> None:
        """Close every connection once `byte_count` more bytes were passed on; happens once."""
        self._ask(lambda: self._faults[direction].plan_drop(byte_count, reset))

    def silence(self, silent: bool = True) -> None:
        """Hold every byte, and every end of a connection, and keep connections open; False lets all that was held go.

        New connections are made: the kernel does that.
        """
        self._ask(lambda: setattr(self, "_silent", silent))

    def flip(self, direction: Direction, *, after_bytes: int = 0, byte_count: float = math.inf) -> None:
        """Invert every bit of `byte_count` bytes, from `after_bytes` more bytes on; a count of 0 ends it."""
        self._ask(lambda: self._faults[direction].plan_flip(after_bytes, byte_count))

    def insert(self, direction: Direction, junk: bytes, *, after_bytes: int = 0) -> None:
        """Put `junk` in front of the byte that comes after `after_bytes` more bytes; happens once."""
        self._ask(lambda: self._faults[direction].plan_insert(after_bytes, junk))

    def refuse(self, refusing: bool = True) -> None:
        """Refuse new connections, as a port without a server does; open ones stay. False accepts them again."""
        self._ask(lambda: self._set_refusing(refusing))

    def limit_rate(self, rate_bytes_per_s: float | None) -> None:
        """Pass no more bytes a second in each direction, over all connections together; None for no limit."""

        def apply() -> None:
            for faults in self._faults.values():
                faults.limit_rate(rate_bytes_per_s)

        self._ask(apply)

    def delay(self, latency_s: float) -> None:
        """Pass every byte on so much later; a round trip takes twice as long."""
        self._ask(lambda: setattr(self, "_latency_s", latency_s))

    def narrow(self, receive_buffer_bytes: int, segment_bytes: int = 536) -> None:
        """New connections get small buffers and segments, so that a large `send` cannot take all it is given."""

        def apply() -> None:
            self._buffer_bytes, self._segment_bytes = receive_buffer_bytes, segment_bytes
            self._make_narrow(self._listener)

        self._ask(apply)

    def _ask(self, act: Callable[[], _T]) -> _T:
        """Run `act` in the proxy's thread, to which everything belongs."""
        answer: Future[_T] = Future()

        def run() -> None:
            try:
                answer.set_result(act())
            except Exception as error:
                answer.set_exception(error)

        if not self._thread.is_alive():
            return act()  # closed: nobody else looks at it any more
        self._requests.put(run)
        self._waker.send(b"!")
        return answer.result(_PATIENCE_S)

    def _serve(self) -> None:
        try:
            while not self._closing:
                self._wait()
                self._answer_requests()
                now_s = time.monotonic()
                for connection in list(self._connections):
                    self._pass_on(connection, now_s)
        finally:
            self._drop_all(reset=True)
            self._answer_requests()
            self._listener.close()

    def _answer_requests(self) -> None:
        while True:
            try:
                request = self._requests.get_nowait()
            except Empty:
                return
            request()

    def _wait(self) -> None:
        """Wait for a client, a request, bytes, room for bytes, or the time of bytes that are due; read what came."""
        now_s = time.monotonic()
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        if not self._refusing:
            poll.register(self._listener, select.POLLIN)
        masks: dict[int, int] = {}
        wait_s = math.inf
        readable: dict[int, _Flow] = {}
        for flow in (flow for connection in self._connections for flow in connection.flows):
            if flow.wants_more:
                masks[flow.source.fileno()] = masks.get(flow.source.fileno(), 0) | select.POLLIN
                readable[flow.source.fileno()] = flow
            ready_in_s = self._ready_in_s(flow, now_s)
            wait_s = min(wait_s, ready_in_s or math.inf)
            if ready_in_s == 0:
                masks[flow.sink.fileno()] = masks.get(flow.sink.fileno(), 0) | select.POLLOUT
        for number, mask in masks.items():
            poll.register(number, mask)
        for number, _ in poll.poll(None if wait_s == math.inf else math.ceil(wait_s * 1e3)):
            if number == self._woken.fileno():
                self._woken.recv(4096)
            elif number == self._listener.fileno():
                self._accept()
            elif number in readable:
                readable[number].read(self._latency_s)

    def _ready_in_s(self, flow: _Flow, now_s: float) -> float:
        if self._silent or not flow.waiting:
            return math.inf
        due_in_s = max(0.0, flow.waiting[0][0] - now_s)
        return due_in_s or self._faults[flow.direction].allowed_in_s(now_s)

    def _accept(self) -> None:
        try:
            client, _ = self._listener.accept()
        except OSError:
            return
        self._accepted += 1
        server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._make_narrow(server)
        for end in (client, server):
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = _Connection(client, server)
        if server.connect_ex(("127.0.0.1", self._target_port)) in (0, errno.EINPROGRESS):
            self._connections.append(connection)
        else:
            connection.close(reset=True)

    def _pass_on(self, connection: _Connection, now_s: float) -> None:
        for flow in connection.flows:
            faults = self._faults[flow.direction]
            while connection in self._connections and self._ready_in_s(flow, now_s) == 0:
                if flow.waiting[0][1] is _RESET:
                    self._drop(connection, reset=True)
                elif not flow.write(faults):
                    if flow.broken:
                        self._drop(connection, reset=True)
                    break
            if faults.drop_is_due:
                self._drop_all(faults.take_drop())
        if connection in self._connections and all(flow.finished for flow in connection.flows):
            self._drop(connection, reset=False)

    def _drop(self, connection: _Connection, reset: bool) -> None:
        self._connections.remove(connection)
        connection.close(reset)

    def _drop_all(self, reset: bool) -> None:
        for connection in list(self._connections):
            self._drop(connection, reset)

    def _set_refusing(self, refusing: bool) -> None:
        if refusing and not self._refusing:
            # A socket that is bound and does not listen keeps the port and refuses.
            bound = _bound_socket(self.port)
            self._listener.close()
            self._listener = bound
            self._make_narrow(bound)
        elif self._refusing and not refusing:
            self._listener.listen()
        self._refusing = refusing

    def _make_narrow(self, end: socket.socket) -> None:
        if self._buffer_bytes is not None and self._segment_bytes is not None:
            for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
                end.setsockopt(socket.SOL_SOCKET, option, self._buffer_bytes)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, self._segment_bytes)


@dataclass
class _Faults:
    """What is wrong with one direction. Places are counted in bytes passed on since the proxy was made."""

    passed_bytes: int = 0
    drop_at: float = math.inf
    drop_resets: bool = True
    flip_from: float = math.inf
    flip_to: float = math.inf
    insert_at: float = math.inf
    junk: bytes = b""
    rate_bytes_per_s: float | None = None
    allowance_bytes: float = math.inf
    counted_s: float = 0.0

    def plan_drop(self, byte_count: int, reset: bool) -> None:
        self.drop_at, self.drop_resets = self.passed_bytes + byte_count, reset

    def plan_flip(self, after_bytes: int, byte_count: float) -> None:
        self.flip_from = self.passed_bytes + after_bytes
        self.flip_to = self.flip_from + byte_count

    def plan_insert(self, after_bytes: int, junk: bytes) -> None:
        self.insert_at, self.junk = self.passed_bytes + after_bytes, junk

    def limit_rate(self, rate_bytes_per_s: float | None) -> None:
        self.rate_bytes_per_s = rate_bytes_per_s
        self.allowance_bytes = math.inf if rate_bytes_per_s is None else 0.0
        self.counted_s = time.monotonic()

    @property
    def drop_is_due(self) -> bool:
        return self.passed_bytes >= self.drop_at

    def take_drop(self) -> bool:
        self.drop_at = math.inf
        return self.drop_resets

    def allowed_in_s(self, now_s: float) -> float:
        """Zero when a byte may pass now, else when to look again."""
        if self.rate_bytes_per_s is not None:
            most_bytes = max(1.0, self.rate_bytes_per_s * 5 * _RATE_STEP_S)
            earned_bytes = self.rate_bytes_per_s * (now_s - self.counted_s)
            self.allowance_bytes = min(most_bytes, self.allowance_bytes + earned_bytes)
            self.counted_s = now_s
            if self.allowance_bytes < 1:
                return max(_RATE_STEP_S, (1 - self.allowance_bytes) / self.rate_bytes_per_s)
        return 0.0

    def take_junk(self) -> bytes:
        """What is to be inserted right here."""
        if self.passed_bytes < self.insert_at:
            return b""
        self.insert_at = math.inf
        return self.junk

    def alter(self, data: memoryview) -> bytes:
        """As much of the beginning of `data` as may pass before something happens, as it is to arrive."""
        start = self.passed_bytes
        room = min(len(data), self.drop_at - start, self.insert_at - start, self.allowance_bytes)
        altered = bytearray(data[: int(room)])
        first = max(0.0, self.flip_from - start)
        last = min(float(len(altered)), self.flip_to - start)
        if first < last:
            inverted = bytes(byte ^ 0xFF for byte in altered[int(first) : int(last)])
            altered[int(first) : int(last)] = inverted
        return bytes(altered)

    def count(self, byte_count: int) -> None:
        self.passed_bytes += byte_count
        self.allowance_bytes -= byte_count


@dataclass
class _Flow:
    """One direction of one connection."""

    source: socket.socket
    sink: socket.socket
    direction: Direction
    waiting: deque[tuple[float, memoryview | bytes | None]] = field(default_factory=deque)
    held_bytes: int = 0
    ended: bool = False
    finished: bool = False
    broken: bool = False

    @property
    def wants_more(self) -> bool:
        return not self.ended and self.held_bytes < _HELD_BYTES

    def read(self, latency_s: float) -> None:
        data: bytes | None
        try:
            data = self.source.recv(_CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = _RESET
        self.ended = not data
        self.held_bytes += len(data or b"")
        self.waiting.append((time.monotonic() + latency_s, memoryview(data) if data else data))

    def write(self, faults: _Faults) -> bool:
        """Pass on what waits in front; False when no more can go now."""
        if faults.drop_is_due:
            return False
        due_s, data = self.waiting[0]
        if junk := faults.take_junk():
            self.waiting.appendleft((due_s, memoryview(junk)))
            self.held_bytes += len(junk)
            return True
        try:
            if not isinstance(data, memoryview):
                self.waiting.popleft()
                self.sink.shutdown(socket.SHUT_WR)
                self.finished = True
                return False
            sent = self.sink.send(faults.alter(data))
        except BlockingIOError:
            return False
        except OSError:
            self.broken = True
            return False
        faults.count(sent)
        self.held_bytes -= sent
        self.waiting.popleft()
        if sent < len(data):
            self.waiting.appendleft((due_s, data[sent:]))
        return True


class _Connection:
    """A client, a server, and what goes between them."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.ends = (client, server)
        self.flows = (_Flow(client, server, Direction.TO_SERVER), _Flow(server, client, Direction.TO_CLIENT))

    def close(self, reset: bool) -> None:
        for end in self.ends:
            if reset:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            else:
                _discard_unread(end)  # the kernel resets what is closed with bytes unread
            end.close()


def _discard_unread(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while end.recv(_CHUNK_BYTES):
            pass


def _bound_socket(port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        bound.setsockopt(socket.SOL_SOCKET, option, 1)
    bound.bind(("127.0.0.1", port))
    bound.setblocking(False)
    return bound
