"""The transports that the contract suite runs over. A new transport joins by one more entry in `PLACES`."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.devices.local.host_transport import HostTransport
from halide_autotune.devices.transport import Transport
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.toolchain.zig import ZigToolchain
from tests.contract.local_device import local_transport
from tests.remote_board import RemoteBoard, adb_board, ssh_board
from tests.ssh_access import SshAccess
from tests.sshd_server import SshdServer

PROBE = Path(__file__).parent / "probe.c"
MEMORY_BYTES = 4 * 2**30
# Where servers are is not on every user's path.
SEARCH_PATH = os.pathsep.join((os.defpath, "/usr/sbin", "/usr/local/sbin"))
# Gives a transport to a slot of the device.
OpenTransport = Callable[[int], Transport]
StartServer = Callable[..., SshdServer]
StartDevice = Callable[[Path, Settings], AbstractContextManager[OpenTransport]]


@dataclass(frozen=True)
class Place:
    """Where programs run.

    Attributes:
        triple: what a program for it is compiled for.
        start: makes such a device, below a folder.
        needs: commands without which its tests are skipped.
    """

    name: str
    triple: str
    start: StartDevice
    needs: Sequence[str] = ()


@contextlib.contextmanager
def _local(folder: Path, settings: Settings) -> Iterator[OpenTransport]:
    yield lambda slot: HostTransport(folder, settings.environment, MEMORY_BYTES)


@contextlib.contextmanager
def _qemu(folder: Path, settings: Settings) -> Iterator[OpenTransport]:
    launcher = ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")
    yield lambda slot: HostTransport(folder, settings.environment, MEMORY_BYTES, launcher=launcher)


@contextlib.contextmanager
def _agent(folder: Path, settings: Settings) -> Iterator[OpenTransport]:
    yield lambda slot: local_transport(folder, ContentCache(settings.cache_folder), slot=slot)


@contextlib.contextmanager
def _ssh(folder: Path, settings: Settings) -> Iterator[OpenTransport]:
    with ssh_board(folder) as board:
        yield lambda slot: board.transport(ContentCache(settings.cache_folder), slot=slot)


@contextlib.contextmanager
def _adb(folder: Path, settings: Settings) -> Iterator[OpenTransport]:
    with adb_board(folder) as board:
        yield lambda slot: board.transport(ContentCache(settings.cache_folder), slot=slot)


PLACES = (
    Place("local", "x86_64-linux-gnu.2.28", _local),
    Place("qemu", "aarch64-linux-gnu.2.28", _qemu, ("qemu-aarch64",)),
    Place("agent", "x86_64-linux-gnu.2.28", _agent),
    Place("ssh", "x86_64-linux-gnu.2.28", _ssh, ("sshd",)),
    Place("adb", "x86_64-linux-gnu.2.28", _adb),
)


@pytest.fixture(params=PLACES, ids=lambda place: place.name)
def place(request: pytest.FixtureRequest) -> Place:
    chosen: Place = request.param
    for command in chosen.needs:
        if not shutil.which(command, path=SEARCH_PATH):
            pytest.skip(f"{command} is not installed")
    return chosen


@pytest.fixture
def probe(place: Place, cache: ContentCache) -> Path:
    """The program of probe.c, compiled for the place; once in a session."""
    return _compiled_probe(place.triple, cache)


@pytest.fixture
def x86_probe(cache: ContentCache) -> Path:
    """The program of probe.c for this machine."""
    return _compiled_probe(PLACES[0].triple, cache)


def _compiled_probe(triple: str, cache: ContentCache) -> Path:
    toolchain = ZigToolchain(triple, cache.root / "zig")

    def build(output: Path) -> None:
        compiled = output.with_suffix(".o")
        toolchain.compile_c(PROBE, compiled, [])
        toolchain.link([compiled], output)

    return cache.get_or_build([toolchain.fingerprint(), PROBE.read_bytes()], ".probe", build)


@pytest.fixture
def open_transport(place: Place, settings: Settings, tmp_path: Path) -> Iterator[OpenTransport]:
    """Opens transports to one device of the place."""
    with place.start(tmp_path / "devices", settings) as opener:
        yield opener


@pytest.fixture
def transport(open_transport: OpenTransport, probe: Path) -> Iterator[Transport]:
    """An open transport with the probe on the device as `probe`."""
    opened = open_transport(0)
    opened.push(probe, "probe")
    yield opened
    opened.close()


@pytest.fixture(params=["ssh", "adb"])
def board(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RemoteBoard]:
    if request.param == "ssh" and not shutil.which("sshd", path=SEARCH_PATH):
        pytest.skip("sshd is not installed")
    with ssh_board(tmp_path / "b") if request.param == "ssh" else adb_board(tmp_path / "b") as made:
        yield made


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[StartServer]:
    """Starts a real sshd, with fields of SshdServer; each is killed in the end."""
    started: list[SshdServer] = []

    def start(**fields: Any) -> SshdServer:
        server = SshdServer(tmp_path / f"server{len(started)}", **fields)
        started.append(server)
        server.start()
        return server

    yield start
    for server in started:
        server.kill()


@pytest.fixture
def server(start_server: StartServer) -> SshdServer:
    return start_server()


@pytest.fixture
def no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of whoever runs the tests are not tried."""
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


@pytest.fixture
def access(tmp_path: Path) -> SshAccess:
    return SshAccess(tmp_path / "access")


@pytest.fixture(params=["openssh", "paramiko"])
def any_reader(request: pytest.FixtureRequest, access: SshAccess) -> None:
    """The SSH configuration is read by either of the two."""
    if request.param == "paramiko":
        access.ssh_program = None
    elif access.ssh_program is None:
        pytest.skip("ssh is not installed")
