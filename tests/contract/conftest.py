"""The transports that the contract suite runs over. A new transport joins by one more entry in `PLACES`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from devices.host_transport import HostTransport
from devices.transport import Transport
from sdk.settings import Settings
from targets.content_cache import ContentCache
from targets.zig_toolchain import ZigToolchain

PROBE = Path(__file__).parent / "probe.c"
MEMORY_BYTES = 4 * 2**30
OpenTransport = Callable[[Path, Settings], Transport]


@dataclass(frozen=True)
class Place:
    """Where programs run.

    Attributes:
        triple: what a program for it is compiled for.
        needs: commands without which its tests are skipped.
    """

    name: str
    triple: str
    open: OpenTransport
    needs: Sequence[str] = ()


def _open_local(folder: Path, settings: Settings) -> Transport:
    return HostTransport(folder, settings.environment, MEMORY_BYTES)


def _open_qemu(folder: Path, settings: Settings) -> Transport:
    launcher = ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")
    return HostTransport(folder, settings.environment, MEMORY_BYTES, launcher=launcher)


PLACES = (
    Place("local", "x86_64-linux-gnu.2.28", _open_local),
    Place("qemu", "aarch64-linux-gnu.2.28", _open_qemu, ("qemu-aarch64",)),
)


@pytest.fixture(params=PLACES, ids=lambda place: place.name)
def place(request: pytest.FixtureRequest) -> Place:
    chosen: Place = request.param
    for command in chosen.needs:
        if not shutil.which(command):
            pytest.skip(f"{command} is not installed")
    return chosen


@pytest.fixture
def probe(place: Place, cache: ContentCache) -> Path:
    """The program of probe.c, compiled for the place; once in a session."""
    toolchain = ZigToolchain(place.triple, cache.root / "zig")

    def build(output: Path) -> None:
        compiled = output.with_suffix(".o")
        toolchain.compile_c(PROBE, compiled, [])
        toolchain.link([compiled], output)

    return cache.get_or_build([toolchain.fingerprint(), PROBE.read_bytes()], ".probe", build)


@pytest.fixture
def transport(place: Place, settings: Settings, tmp_path: Path, probe: Path) -> Iterator[Transport]:
    """An open transport with the probe on the device as `probe`."""
    opened = place.open(tmp_path / "devices", settings)
    opened.push(probe, "probe")
    yield opened
    opened.close()
