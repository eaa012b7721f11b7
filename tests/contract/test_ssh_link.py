"""What SshLink does over a real sshd: files, programs, and connections that end."""

from __future__ import annotations

import contextlib
import os
import pwd
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.ssh.link import SshLink
from halide_autotune.targets.errors import DeviceError
from tests.contract.conftest import StartServer
from tests.process_state import has_ended
from tests.ssh_access import SshAccess
from tests.sshd_server import SSHD, SshdServer

pytestmark = pytest.mark.skipif(SSHD is None, reason="sshd is not installed")

PATIENCE_S = 120.0
OpenLink = Callable[..., SshLink]


@pytest.fixture
def open_link(access: SshAccess) -> Iterator[OpenLink]:
    opened: list[SshLink] = []

    def open_(server: SshdServer, **fields: Any) -> SshLink:
        access.trust(server)
        link = SshLink("board", access.address(server), access.settings(), **fields)
        opened.append(link)
        link.connect()
        return link

    yield open_
    for link in opened:
        link.close()


@pytest.fixture
def link(server: SshdServer, open_link: OpenLink) -> SshLink:
    return open_link(server)


def write_program(folder: Path, text: str) -> str:
    """A shell script whose path can be run on the device, which is this machine."""
    program = folder / "program"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o700)
    return str(program)


def first_output(blocks: Iterator[bytes]) -> bytes:
    return next(block for block in blocks if block)


def test_puts_a_file_into_folders_that_it_makes(link: SshLink, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(os.urandom(5_000_003))
    target = tmp_path / "a" / "b" / "c" / "target"
    link.put(source, str(target))
    assert target.read_bytes() == source.read_bytes()
    assert target.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("size_bytes", [0, 1, 31_999, 32_000, 32_001, 64_000, 4_000_000])
def test_what_was_put_is_got_back(link: SshLink, tmp_path: Path, size_bytes: int) -> None:
    source = tmp_path / "source"
    source.write_bytes(os.urandom(size_bytes))
    target = tmp_path / "target"
    target.write_bytes(b"longer than what replaces it" * 1_000)
    link.put(source, str(target))
    link.get(str(target), tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == source.read_bytes()


def test_paths_are_relative_to_the_home_folder(link: SshLink, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text("text")
    relative = os.path.relpath(tmp_path / "new" / "target", pwd.getpwuid(os.getuid()).pw_dir)
    link.put(source, relative)
    assert (tmp_path / "new" / "target").read_text() == "text"
    link.get(relative, tmp_path / "back")
    assert (tmp_path / "back").read_text() == "text"


def test_a_full_storage_is_told(link: SshLink, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x" * 200_000)
    with pytest.raises(DeviceTrouble, match="has no room for /dev/full") as caught:
        link.put(source, "/dev/full")
    assert caught.value.kind is TroubleKind.FULL
    assert "df -h" in caught.value.next_step
    # The connection is as good as before.
    link.put(source, str(tmp_path / "target"))


def test_one_small_write_to_a_full_storage_is_told(link: SshLink, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x")
    with pytest.raises(DeviceTrouble) as caught:
        link.put(source, "/dev/full")
    assert caught.value.kind is TroubleKind.FULL


@pytest.mark.parametrize("path", ["/proc/no/such/folder", "/proc/version"])
def test_a_path_that_cannot_be_written_is_told(link: SshLink, tmp_path: Path, path: str) -> None:
    source = tmp_path / "source"
    source.write_text("text")
    with pytest.raises(DeviceTrouble, match=path) as caught:
        link.put(source, path)
    assert caught.value.kind in (TroubleKind.BROKEN, TroubleKind.FULL)


def test_a_folder_in_the_place_of_a_file_is_told(link: SshLink, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text("text")
    (tmp_path / "folder").mkdir()
    with pytest.raises(DeviceTrouble, match="directory") as caught:
        link.put(source, str(tmp_path / "folder"))
    assert caught.value.kind is TroubleKind.BROKEN


def test_a_missing_local_file_is_not_the_devices_fault(link: SshLink, tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="cannot be read") as caught:
        link.put(tmp_path / "missing", "target")
    assert not isinstance(caught.value, DeviceTrouble)


def test_a_missing_file_is_told(link: SshLink, tmp_path: Path) -> None:
    with pytest.raises(DeviceTrouble, match="No such file") as caught:
        link.get(str(tmp_path / "missing"), tmp_path / "back")
    assert caught.value.kind is TroubleKind.BROKEN


def test_a_full_disk_here_is_not_the_devices_fault(link: SshLink, tmp_path: Path) -> None:
    (tmp_path / "source").write_text("text")
    with pytest.raises(DeviceError, match="No space left") as caught:
        link.get(str(tmp_path / "source"), Path("/dev/full"))
    assert not isinstance(caught.value, DeviceTrouble)
    assert b"".join(link.stream(["echo", "ok"])) == b"ok\n"


def test_both_streams_come_in_order(link: SshLink, tmp_path: Path) -> None:
    program = write_program(tmp_path, "echo one; sleep 0.2; echo two >&2; sleep 0.2; echo three; exit 3")
    assert b"".join(link.stream([program])) == b"one\ntwo\nthree\n"


def test_a_megabyte_of_output_arrives_whole(link: SshLink) -> None:
    assert b"".join(link.stream(["seq", "-w", "1", "150000"])) == b"".join(b"%06d\n" % i for i in range(1, 150001))


def test_it_ticks_while_nothing_comes(link: SshLink, tmp_path: Path) -> None:
    blocks = link.stream([write_program(tmp_path, "echo start; read line")])
    assert first_output(blocks) == b"start\n"
    assert [next(blocks) for _ in range(3)] == [b""] * 3
    assert isinstance(blocks, Generator)
    blocks.close()


def test_a_program_that_closed_its_output_is_awaited(link: SshLink, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    program = write_program(tmp_path, f"exec >&- 2>&-; sleep 0.7; touch {marker}")
    assert b"".join(link.stream([program])) == b""
    assert marker.exists()


def test_a_program_that_a_signal_ends_ends_the_stream(link: SshLink, tmp_path: Path) -> None:
    assert b"".join(link.stream([write_program(tmp_path, "echo here; kill -9 $$")])) == b"here\n"
    assert b"".join(link.stream(["echo", "ok"])) == b"ok\n"


def test_hanging_up_tells_the_program(link: SshLink, tmp_path: Path) -> None:
    blocks = link.stream([write_program(tmp_path, "echo $$; read line; exit 0")])
    pid = int(first_output(blocks))
    assert isinstance(blocks, Generator)
    blocks.close()
    assert has_ended(pid)
    assert b"".join(link.stream(["echo", "ok"])) == b"ok\n"


def test_input_stays_open_until_the_end(link: SshLink, tmp_path: Path) -> None:
    # With its input closed, `read` would fail at once instead of at its time limit.
    program = write_program(tmp_path, "exec bash -c 'read -t 1 line; echo status $?'")
    assert b"".join(link.stream([program])) == b"status 142\n"


def test_words_that_a_shell_would_read_are_refused(link: SshLink) -> None:
    with pytest.raises(ValueError, match="must not reach a shell"):
        link.stream(["echo", "$(id)"])


def test_it_must_be_connected(access: SshAccess, server: SshdServer, tmp_path: Path) -> None:
    link = SshLink("board", access.address(server), access.settings())
    with pytest.raises(DeviceTrouble, match="not connected") as caught:
        link.put(tmp_path, "x")
    assert caught.value.kind is TroubleKind.LOST
    link.close()


def test_a_server_killed_between_operations_is_lost(link: SshLink, server: SshdServer, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text("text")
    link.put(source, str(tmp_path / "target"))
    server.kill()
    with pytest.raises(DeviceTrouble, match="closed the connection") as caught:
        link.put(source, str(tmp_path / "target"))
    assert caught.value.kind is TroubleKind.LOST
    server.start()
    link.connect()
    link.put(source, str(tmp_path / "again"))
    assert (tmp_path / "again").read_text() == "text"


def test_a_server_killed_while_a_file_is_copied_is_lost(link: SshLink, server: SshdServer, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    killed = threading.Event()

    def feed() -> None:
        sent_bytes = 0
        # A reader that gave up is what ends it.
        with fifo.open("wb", buffering=0) as file, contextlib.suppress(BrokenPipeError):
            while True:
                sent_bytes += file.write(b"x" * 10_000)
                if sent_bytes > 3_000_000 and not killed.is_set():
                    server.kill()
                    killed.set()

    feeder = threading.Thread(target=feed)
    feeder.start()
    with pytest.raises(DeviceTrouble) as caught:
        link.put(fifo, str(tmp_path / "target"))
    feeder.join()
    assert killed.is_set()
    assert caught.value.kind is TroubleKind.LOST


def test_a_server_killed_while_a_program_runs_is_lost(link: SshLink, server: SshdServer, tmp_path: Path) -> None:
    blocks = link.stream([write_program(tmp_path, "echo start; sleep 60")])
    assert first_output(blocks) == b"start\n"
    server.kill()
    with pytest.raises(DeviceTrouble, match="closed the connection while program was running") as caught:
        list(blocks)
    assert caught.value.kind is TroubleKind.LOST


def test_a_server_killed_while_a_file_is_fetched_is_lost(link: SshLink, server: SshdServer, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    def feed() -> None:
        with fifo.open("wb") as file:
            file.write(b"x" * 100_000)
            file.flush()
            server.kill()

    feeder = threading.Thread(target=feed)
    feeder.start()
    with pytest.raises(DeviceTrouble) as caught:
        link.get(str(fifo), tmp_path / "back")
    feeder.join()
    assert caught.value.kind is TroubleKind.LOST


def test_a_silent_server_is_given_up(
    access: SshAccess, server: SshdServer, open_link: OpenLink, tmp_path: Path
) -> None:
    access.config.write_text("ServerAliveInterval 3\n")
    link = open_link(server)
    blocks = link.stream([write_program(tmp_path, "echo start; sleep 60")])
    assert first_output(blocks) == b"start\n"
    server.freeze()
    with pytest.raises(DeviceTrouble, match="stopped responding while program was running") as caught:
        list(blocks)
    assert caught.value.kind is TroubleKind.LOST


def test_a_quiet_program_on_an_answering_server_is_not_given_up(
    access: SshAccess, server: SshdServer, open_link: OpenLink, tmp_path: Path
) -> None:
    access.config.write_text("ServerAliveInterval 8\n")
    link = open_link(server)
    assert b"".join(link.stream([write_program(tmp_path, "sleep 18; echo end")])) == b"end\n"


@pytest.mark.slow
def test_a_silent_server_ends_a_copy(
    access: SshAccess, server: SshdServer, open_link: OpenLink, tmp_path: Path
) -> None:
    access.config.write_text("ServerAliveInterval 8\n")
    link = open_link(server)
    source = tmp_path / "source"
    source.write_bytes(b"x" * 20_000_000)
    link.put(source, str(tmp_path / "target"))
    server.freeze()
    with pytest.raises(DeviceTrouble, match="stopped responding while source was being copied") as caught:
        link.put(source, str(tmp_path / "target"))
    assert caught.value.kind is TroubleKind.TIMEOUT
    server.thaw()
    link.connect()
    link.put(source, str(tmp_path / "target"))


def test_a_silent_jump_host_ends_a_copy(
    access: SshAccess, server: SshdServer, start_server: StartServer, tmp_path: Path
) -> None:
    access.config.write_text("ServerAliveInterval 3\n")
    jump = start_server()
    access.trust(server, jump)
    address = access.address(server, jump=(f"{jump.user}@127.0.0.1:{jump.port}",))
    link = SshLink("board", address, access.settings())
    link.connect()
    source = tmp_path / "source"
    source.write_bytes(b"x" * 20_000_000)
    jump.freeze()
    with pytest.raises(DeviceTrouble, match="stopped responding while source was being copied") as caught:
        link.put(source, str(tmp_path / "target"))
    assert caught.value.kind is TroubleKind.TIMEOUT


@pytest.mark.parametrize("size_bytes", [1, 10_000_000])
def test_a_copy_that_stands_still_is_given_up(
    server: SshdServer, open_link: OpenLink, tmp_path: Path, size_bytes: int
) -> None:
    link = open_link(server, silence_s=5.0)
    source = tmp_path / "source"
    source.write_bytes(b"x" * size_bytes)
    target = tmp_path / "target"
    os.mkfifo(target)  # which nobody reads
    with pytest.raises(DeviceTrouble, match="stopped responding") as caught:
        link.put(source, str(target))
    assert caught.value.kind is TroubleKind.TIMEOUT


def test_a_server_that_allows_no_session_is_told(start_server: StartServer, open_link: OpenLink) -> None:
    link = open_link(start_server(settings=["MaxSessions 0"]))
    with pytest.raises(DeviceTrouble, match="refuses to open a session") as caught:
        list(link.stream(["true"]))
    assert caught.value.kind is TroubleKind.BROKEN


def test_closing_is_quiet_and_leaves_nothing(link: SshLink, server: SshdServer) -> None:
    threads = {thread.name for thread in threading.enumerate()}
    assert "ssh-keep-alive" in threads
    link.close()
    link.close()
    deadline_s = time.monotonic() + PATIENCE_S
    while any(thread.name == "ssh-keep-alive" for thread in threading.enumerate()) or server.sessions():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def test_a_folder_whose_name_a_shell_takes_for_an_assignment(link: SshLink, tmp_path: Path) -> None:
    """Relative paths are below the home folder of the server's user."""
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    source = tmp_path / "source"
    source.write_text('#!/bin/sh\necho "$1 $0"\n')
    with tempfile.TemporaryDirectory(prefix="PATH=", dir=home) as folder:
        program = f"{Path(folder).name}/PATH=x/program"
        link.put(source, program)
        assert b"".join(link.stream([program, "key=value"])) == f"key=value ./{program}\n".encode()
        link.get(program, tmp_path / "fetched")
    assert (tmp_path / "fetched").read_text() == source.read_text()
