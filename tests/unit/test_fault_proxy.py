"""The fault-injecting proxy itself, between real sockets and before a real sshd."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fault_proxy import Direction, FaultProxy
from tests.kept_port import KeptPort

PATIENCE_S = 120.0
TO_SERVER, TO_CLIENT = Direction.TO_SERVER, Direction.TO_CLIENT


class Server:
    """A listening socket; the test takes the server's side itself."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(PATIENCE_S)
        self.port: int = self.listener.getsockname()[1]

    def accept(self) -> socket.socket:
        end, _ = self.listener.accept()
        end.settimeout(PATIENCE_S)
        return end


@pytest.fixture
def stack() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as opened:
        yield opened


@pytest.fixture
def server(stack: contextlib.ExitStack) -> Server:
    made = Server()
    stack.callback(made.listener.close)
    return made


@pytest.fixture
def proxy(stack: contextlib.ExitStack, server: Server) -> FaultProxy:
    return stack.enter_context(FaultProxy(server.port))


class Pair:
    """A client and the server's end of its connection."""

    def __init__(self, stack: contextlib.ExitStack, proxy: FaultProxy, server: Server) -> None:
        self.client = stack.enter_context(socket.create_connection(("127.0.0.1", proxy.port), PATIENCE_S))
        self.server = stack.enter_context(server.accept())


@pytest.fixture
def pair(stack: contextlib.ExitStack, proxy: FaultProxy, server: Server) -> Pair:
    return Pair(stack, proxy, server)


def receive(end: socket.socket, byte_count: int) -> bytes:
    data = b""
    while len(data) < byte_count and (chunk := end.recv(byte_count - len(data))):
        data += chunk
    return data


def receive_all(end: socket.socket) -> tuple[bytes, bool]:
    """All bytes until the end, and whether that was a reset."""
    data = b""
    try:
        while chunk := end.recv(65536):
            data += chunk
    except ConnectionResetError:
        return data, True
    return data, False


def has_nothing(end: socket.socket) -> bool:
    end.settimeout(0.2)
    try:
        end.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        return True
    finally:
        end.settimeout(PATIENCE_S)
    return False


def test_without_faults_everything_arrives_and_is_counted(pair: Pair, proxy: FaultProxy) -> None:
    sent = os.urandom(3_000_000)
    sender = threading.Thread(target=pair.client.sendall, args=(sent,))
    sender.start()
    assert receive(pair.server, len(sent)) == sent
    sender.join()
    pair.server.sendall(b"thanks")
    assert receive(pair.client, 6) == b"thanks"
    assert proxy.bytes_passed(TO_SERVER) == len(sent)
    assert proxy.bytes_passed(TO_CLIENT) == 6
    assert (proxy.connections_accepted, proxy.connections_open) == (1, 1)


def test_one_side_may_end_before_the_other(pair: Pair) -> None:
    pair.client.sendall(b"question")
    pair.client.shutdown(socket.SHUT_WR)
    assert receive_all(pair.server) == (b"question", False)
    pair.server.sendall(b"answer")
    pair.server.close()
    assert receive_all(pair.client) == (b"answer", False)


def test_a_reset_is_passed_on(pair: Pair) -> None:
    pair.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    pair.client.close()
    assert receive_all(pair.server) == (b"", True)


@pytest.mark.parametrize("reset", [True, False])
def test_drop_all(pair: Pair, proxy: FaultProxy, reset: bool) -> None:
    pair.client.sendall(b"x")
    assert receive(pair.server, 1) == b"x"
    proxy.drop_all(reset=reset)
    assert proxy.connections_open == 0
    for end in (pair.client, pair.server):
        assert receive_all(end) == (b"", reset)


@pytest.mark.parametrize("reset", [True, False])
def test_drop_after_so_many_bytes(
    stack: contextlib.ExitStack, pair: Pair, proxy: FaultProxy, server: Server, reset: bool
) -> None:
    pair.server.sendall(b"ab")
    assert receive(pair.client, 2) == b"ab"
    proxy.drop_after(TO_CLIENT, 5, reset=reset)
    pair.server.sendall(b"0123456789")
    assert receive_all(pair.client) == (b"01234", reset)
    # Only once.
    again = Pair(stack, proxy, server)
    again.server.sendall(b"0123456789")
    assert receive(again.client, 10) == b"0123456789"


def test_drop_after_nothing_is_at_once(pair: Pair, proxy: FaultProxy) -> None:
    proxy.drop_after(TO_SERVER, 0)
    assert receive_all(pair.client) == (b"", True)


def test_silence_holds_bytes_and_ends(pair: Pair, proxy: FaultProxy) -> None:
    proxy.silence()
    pair.client.sendall(b"held")
    pair.client.shutdown(socket.SHUT_WR)
    assert has_nothing(pair.server)
    assert proxy.connections_open == 1
    assert proxy.bytes_passed(TO_SERVER) == 0
    proxy.silence(False)
    assert receive_all(pair.server) == (b"held", False)


def test_silence_ends_up_blocking_the_sender(pair: Pair, proxy: FaultProxy) -> None:
    proxy.silence()
    pair.client.settimeout(0.5)
    with pytest.raises(TimeoutError):
        pair.client.sendall(bytes(64 * 2**20))


def test_flipped_bytes(pair: Pair, proxy: FaultProxy) -> None:
    proxy.flip(TO_SERVER, after_bytes=2, byte_count=3)
    pair.client.sendall(b"\0" * 8)
    assert receive(pair.server, 8) == b"\0\0\xff\xff\xff\0\0\0"
    proxy.flip(TO_CLIENT)
    pair.server.sendall(b"\x0f\xf0")
    pair.client.sendall(b"whole")
    assert receive(pair.client, 2) == b"\xf0\x0f"
    assert receive(pair.server, 5) == b"whole"
    proxy.flip(TO_CLIENT, byte_count=0)
    pair.server.sendall(b"whole")
    assert receive(pair.client, 5) == b"whole"


def test_flips_are_placed_across_pieces(pair: Pair, proxy: FaultProxy) -> None:
    proxy.flip(TO_SERVER, after_bytes=1, byte_count=2)
    received = b""
    for byte in b"\0\0\0\0":
        pair.client.sendall(bytes([byte]))
        received += receive(pair.server, 1)
    assert received == b"\0\xff\xff\0"


def test_inserted_bytes(pair: Pair, proxy: FaultProxy) -> None:
    proxy.insert(TO_CLIENT, b"JUNK", after_bytes=3)
    pair.server.sendall(b"abcdef")
    assert receive(pair.client, 10) == b"abcJUNKdef"
    pair.server.sendall(b"abcdef")
    assert receive(pair.client, 6) == b"abcdef"


def test_refused_connections(stack: contextlib.ExitStack, pair: Pair, proxy: FaultProxy, server: Server) -> None:
    proxy.refuse()
    proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", proxy.port), PATIENCE_S)
    pair.client.sendall(b"still")
    assert receive(pair.server, 5) == b"still"
    proxy.refuse(False)
    again = Pair(stack, proxy, server)
    again.client.sendall(b"back")
    assert receive(again.server, 4) == b"back"


def test_a_rate_limit_takes_its_time(pair: Pair, proxy: FaultProxy) -> None:
    proxy.limit_rate(100_000)
    start_s = time.monotonic()
    pair.client.sendall(bytes(50_000))
    assert receive(pair.server, 50_000) == bytes(50_000)
    # Never faster than the limit, but for the little that it lets through at once.
    assert time.monotonic() - start_s > 0.4
    proxy.limit_rate(None)
    pair.client.sendall(bytes(1_000_000))
    assert receive(pair.server, 1_000_000) == bytes(1_000_000)


def test_latency_delays_both_ways(pair: Pair, proxy: FaultProxy) -> None:
    proxy.delay(0.15)
    start_s = time.monotonic()
    pair.client.sendall(b"ping")
    assert receive(pair.server, 4) == b"ping"
    pair.server.sendall(b"pong")
    assert receive(pair.client, 4) == b"pong"
    assert time.monotonic() - start_s >= 0.3


def test_a_narrow_link_cuts_large_sends(stack: contextlib.ExitStack, proxy: FaultProxy, server: Server) -> None:
    proxy.narrow(4096)
    proxy.silence()
    pair = Pair(stack, proxy, server)
    pair.client.setblocking(False)
    data = os.urandom(2**20)
    taken = pair.client.send(data)
    assert taken < len(data), "a client that takes no notice of this loses bytes"
    proxy.silence(False)
    pair.client.settimeout(PATIENCE_S)
    sender = threading.Thread(target=pair.client.sendall, args=(data[taken:],))
    sender.start()
    assert receive(pair.server, len(data)) == data
    sender.join()


def test_repointing_sends_new_connections_elsewhere(stack: contextlib.ExitStack, pair: Pair, proxy: FaultProxy) -> None:
    other = Server()
    stack.callback(other.listener.close)
    proxy.repoint(other.port)
    moved = Pair(stack, proxy, other)
    moved.client.sendall(b"new")
    assert receive(moved.server, 3) == b"new"
    pair.client.sendall(b"old")
    assert receive(pair.server, 3) == b"old"


def test_a_server_that_is_gone_is_a_reset(proxy: FaultProxy, server: Server) -> None:
    server.listener.close()
    # Sooner or later: connecting may succeed before the proxy has tried the server.
    with (
        pytest.raises(ConnectionResetError),
        socket.create_connection(("127.0.0.1", proxy.port), PATIENCE_S) as client,
    ):
        client.recv(1)


def test_close_leaves_nothing(server: Server) -> None:
    open_before = set(os.listdir("/proc/self/fd"))
    threads_before = set(threading.enumerate())
    proxy = FaultProxy(server.port)
    with socket.create_connection(("127.0.0.1", proxy.port), PATIENCE_S) as client, server.accept() as end:
        client.sendall(b"x")
        assert receive(end, 1) == b"x"
        proxy.silence()
        client.sendall(b"held")
        proxy.close()
        proxy.close()
        assert receive_all(client)[0] == b""
    assert proxy.bytes_passed(TO_SERVER) == 1
    # What other tests have left may go at any time.
    assert set(threading.enumerate()) <= threads_before
    assert set(os.listdir("/proc/self/fd")) <= open_before
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", proxy.port), PATIENCE_S)


SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")


@pytest.fixture
def sshd_port(tmp_path: Path) -> Iterator[int]:
    """A real sshd of this user that lets in one key."""
    if SSHD is None or not shutil.which("ssh") or not shutil.which("ssh-keygen"):
        pytest.skip("OpenSSH is not installed")
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd of root wants it
    for name in ("host_key", "user_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True)
    shutil.copy(tmp_path / "user_key.pub", tmp_path / "authorized_keys")
    kept = KeptPort()
    port = kept.number
    settings = (
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {tmp_path}/host_key\nPidFile none\nUsePAM no\n"
        f"AuthorizedKeysFile {tmp_path}/authorized_keys\nStrictModes no\nPasswordAuthentication no\n"
    )
    (tmp_path / "sshd_config").write_text(settings)
    log = (tmp_path / "sshd.log").open("wb")
    process = subprocess.Popen([SSHD, "-D", "-e", "-f", str(tmp_path / "sshd_config")], stderr=log)
    try:
        _await_port(port, process)
        yield port
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        log.close()


def _await_port(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s and process.poll() is None:
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), 1.0):
            return
        time.sleep(0.05)
    raise AssertionError("sshd did not start")


def ssh(port: int, folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    options = {
        "IdentityFile": str(folder / "user_key"),
        "IdentitiesOnly": "yes",
        "BatchMode": "yes",
        "StrictHostKeyChecking": "no",
        "UserKnownHostsFile": str(folder / "known_hosts"),
        "ConnectTimeout": "20",
    }
    words = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    return subprocess.run(
        ["ssh", "-F", "none", "-p", str(port), *words, "127.0.0.1", command],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.toolchain
def test_before_a_real_sshd(stack: contextlib.ExitStack, sshd_port: int, tmp_path: Path) -> None:
    proxy = stack.enter_context(FaultProxy(sshd_port))
    proxy.narrow(4096)
    sound = ssh(proxy.port, tmp_path, "head -c 300000 /dev/zero | wc -c; echo through")
    assert (sound.returncode, sound.stdout.split()) == (0, ["300000", "through"]), sound.stderr
    handshake_bytes = proxy.bytes_passed(TO_CLIENT)
    assert handshake_bytes > 1000

    proxy.flip(TO_CLIENT, after_bytes=handshake_bytes // 2, byte_count=1)
    garbled = ssh(proxy.port, tmp_path, "echo through")
    assert garbled.returncode == 255 and garbled.stdout == "", garbled.stderr

    proxy.flip(TO_CLIENT, byte_count=0)
    proxy.drop_after(TO_CLIENT, handshake_bytes + 100_000)
    dropped = ssh(proxy.port, tmp_path, "head -c 300000 /dev/zero")
    assert dropped.returncode == 255
    assert 0 < len(dropped.stdout) < 300_000

    proxy.refuse()
    refused = ssh(proxy.port, tmp_path, "true")
    assert refused.returncode == 255 and "refused" in refused.stderr
