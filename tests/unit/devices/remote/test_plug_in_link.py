"""A package's link: what it raises becomes trouble of the device that names the package."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.devices.device_link import TRANSPORTS
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.remote.open import open_link
from halide_autotune.devices.remote.plug_in_link import PlugInLink
from halide_autotune.devices.remote_place import UrlAddress
from tests.installed_package import install_package
from tests.ssh_access import SshAccess

HERE = Path(__file__)


class Link:
    """Somebody's link, all of whose methods do this."""

    def __init__(self, do: Callable[[], Any]) -> None:
        self.do = do
        self.closed = 0

    def connect(self) -> None:
        self.do()

    def put(self, source: Path, path: str) -> None:
        self.do()

    def get(self, path: str, destination: Path) -> None:
        self.do()

    def stream(self, words: Sequence[str]) -> Iterator[Any]:
        yield self.do()

    def close(self) -> None:
        self.closed += 1
        raise RuntimeError("it is closed already")


def fail() -> None:
    raise OSError("no\nroute")


@pytest.mark.parametrize(
    ("method", "ask", "kind"),
    [
        ("connect", lambda link: link.connect(), TroubleKind.UNREACHABLE),
        ("put", lambda link: link.put(HERE, "x"), TroubleKind.LOST),
        ("get", lambda link: link.get("x", HERE), TroubleKind.LOST),
        ("stream", lambda link: list(link.stream(["x"])), TroubleKind.LOST),
    ],
)
def test_whatever_it_raises_is_trouble_and_closes_it(
    method: str, ask: Callable[[PlugInLink], object], kind: TroubleKind
) -> None:
    theirs = Link(fail)
    with pytest.raises(DeviceTrouble) as caught:
        ask(PlugInLink(theirs, "board", "The transport 'lab'"))
    assert caught.value.kind is kind and theirs.closed == 1
    expected = f"board cannot be used: The transport 'lab' failed in `{method}`: OSError: no route"
    assert caught.value.message == expected


def test_its_own_trouble_goes_through_as_it_is() -> None:
    trouble = DeviceTrouble(TroubleKind.FULL, "The board is full.")

    def full() -> None:
        raise trouble

    theirs = Link(full)
    with pytest.raises(DeviceTrouble) as caught:
        PlugInLink(theirs, "board", "lab").put(HERE, "x")
    assert caught.value is trouble and theirs.closed == 0


def test_what_is_no_bytes_is_trouble() -> None:
    with pytest.raises(DeviceTrouble, match="it must yield bytes, and yields str"):
        list(PlugInLink(Link(lambda: "text"), "board", "lab").stream(["x"]))


def test_a_stream_that_is_closed_early_closes_theirs_at_once() -> None:
    ended: list[str] = []

    class Endless(Link):
        def stream(self, words: Sequence[str]) -> Iterator[bytes]:
            try:
                while True:
                    yield b""
            finally:
                ended.append("closed")

    blocks = PlugInLink(Endless(fail), "board", "lab").stream(["x"])
    assert next(blocks) == b""
    blocks.close()
    assert ended == ["closed"]


def test_a_package_that_cannot_be_used_is_the_devices_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_package(tmp_path, "lab", {TRANSPORTS.group: {"lab": "no_such_module:Lab"}}, {}, monkeypatch)
    connections = SshAccess(tmp_path / "user").settings()
    with pytest.raises(DeviceTrouble, match="The transport 'lab' .* cannot be imported") as caught:
        open_link("board", UrlAddress("lab://rack3/7"), connections)
    assert caught.value.kind is TroubleKind.REFUSED
    assert caught.value.next_step.endswith("or take its devices out of devices.toml.")
    with pytest.raises(DeviceTrouble, match="There is no transport 'other'"):
        open_link("board", UrlAddress("other://7"), connections)
