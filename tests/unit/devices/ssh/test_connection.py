from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from halide_autotune.devices.ssh.connection import WatchedSocket

PATIENCE_S = 0.3
TIMEOUT_S = 0.05


@pytest.fixture
def pair() -> Iterator[tuple[WatchedSocket, socket.socket]]:
    near, far = socket.socketpair()
    watched = WatchedSocket(near, PATIENCE_S)
    watched.settimeout(TIMEOUT_S)
    yield watched, far
    watched.close()
    far.close()


def test_bytes_pass(pair: tuple[WatchedSocket, socket.socket]) -> None:
    watched, far = pair
    assert watched.send(b"there") == 5
    assert far.recv(10) == b"there"
    far.sendall(b"back")
    assert watched.recv(10) == b"back"


def test_silence_alone_is_no_fault(pair: tuple[WatchedSocket, socket.socket]) -> None:
    watched, _ = pair
    end_s = time.monotonic() + 2 * PATIENCE_S
    while time.monotonic() < end_s:
        with pytest.raises(TimeoutError):
            watched.recv(10)
    assert not watched.gave_up
    assert watched.quiet_s >= PATIENCE_S


def test_a_missing_answer_is_given_up(pair: tuple[WatchedSocket, socket.socket]) -> None:
    watched, _ = pair
    watched.expect_answer()
    with pytest.raises(ConnectionAbortedError):
        while True:
            try:
                watched.recv(10)
            except TimeoutError:
                # Asking again must not put it off.
                watched.expect_answer()
    assert watched.gave_up


def test_an_answer_is_enough(pair: tuple[WatchedSocket, socket.socket]) -> None:
    watched, far = pair
    watched.expect_answer()
    far.sendall(b"x")
    assert watched.recv(10) == b"x"
    time.sleep(PATIENCE_S)
    with pytest.raises(TimeoutError):
        watched.recv(10)
    assert not watched.gave_up


def test_a_peer_that_takes_nothing_is_given_up(pair: tuple[WatchedSocket, socket.socket]) -> None:
    watched, _ = pair
    with pytest.raises(ConnectionAbortedError):
        while True:
            try:
                watched.send(b"x" * 100_000)
            except TimeoutError:
                continue
    assert watched.gave_up
