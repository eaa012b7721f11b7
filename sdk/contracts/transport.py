"""What the link to a device must keep to."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from halide_autotune.devices.agent.program import agent_for
from halide_autotune.devices.agent.session import AgentSession
from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.device_link import TRANSPORTS, DeviceLink
from halide_autotune.devices.device_trouble import DeviceTrouble
from halide_autotune.devices.health.probe import sense_device
from halide_autotune.devices.remote.plug_in_link import PlugInLink
from halide_autotune.devices.remote_place import RemotePlace, UrlAddress
from halide_autotune.sdk.contracts.require import require
from halide_autotune.sdk.settings import read_settings
from halide_autotune.targets.process.content_cache import ContentCache

_NAME = "board"
_LARGE_BYTES = 300_000


def check_transport(transport: str | Callable[[str, str], DeviceLink], url: str, folder: str = "") -> None:
    """Check that a link carries files and programs to a device and back, the SDK's agent among them.

    Files are made in a new folder, and removed.

    Args:
        transport: the name of its entry point; or the class or function that the entry point leads to.
        url: of a device with Linux or Android that it can reach now; a container will do.
        folder: where on the device that folder is made; empty for the folder that sessions start in.

    Raises:
        AssertionError: it does not keep to something; the message says to what.
        UsageError: there is none of that name, or it cannot be imported or made.
    """
    name, make = ("it", transport) if callable(transport) else (transport, TRANSPORTS.load(transport))
    link = PlugInLink(TRANSPORTS.checked(name, make, _NAME, url), _NAME, f"The transport {name!r}")
    folder = f"{folder.rstrip('/')}/" * bool(folder) + f"sdk-check-{secrets.token_hex(4)}"
    with tempfile.TemporaryDirectory() as here, contextlib.closing(link), _told():
        link.connect()
        link.connect()
        try:
            _check_files(link, folder, Path(here))
            _check_programs(link)
            link.close()
            link.close()
            link.connect()
            _check_agent(link, url, folder)
        finally:
            with contextlib.suppress(DeviceTrouble):
                link.connect()
                _output(link, "rm", "-rf", folder)


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """What the link could not do, as a promise that it does not keep."""
    try:
        yield
    except DeviceTrouble as trouble:
        raise AssertionError(f"The link must do what it is asked; it does not: {trouble}") from trouble


def _check_files(link: PlugInLink, folder: str, here: Path) -> None:
    source, back = here / "source", here / "back"
    for content in (os.urandom(_LARGE_BYTES), bytes(range(256)) * 4, b""):
        source.write_bytes(content)
        link.put(source, f"{folder}/file")
        link.get(f"{folder}/file", back)
        promise = f"put, and then get, must give back the {len(content)} bytes of a file"
        require(back.read_bytes() == content, promise)
    source.write_bytes(b"#!/bin/sh\necho started $*\n")
    link.put(source, f"{folder}/program")
    said = _output(link, f"{folder}/program", "a", "b=c")
    require(said.strip() == b"started a b=c", "stream must start what put has copied, with its arguments", said)
    said = _output(link, f"{folder}/nothing")
    require(said.strip() != b"", "stream must give what the device's shell says of a program that is not there")
    try:
        link.get(f"{folder}/nothing", back)
    except DeviceTrouble:
        return
    require(False, "get must raise DeviceTrouble where there is no file")


def _check_programs(link: PlugInLink) -> None:
    said = _output(link, "uname", "-m")
    require(said.strip().isascii() and len(said.split()) == 1, "stream must give what a program prints", said)
    said = _output(link, "ls", "/no-such-folder")
    require(b"no-such-folder" in said, "stream must give what a program writes to standard error, too", said)
    blocks = list(link.stream(["sleep", "2"]))
    require(b"" in blocks, "stream must yield b'' at least every 0.25 s while a program is silent", blocks)
    closed_early = link.stream(["sleep", "1"])
    next(closed_early)
    closed_early.close()
    link.connect()
    require(_output(link, "echo", "again").strip() == b"again", "a link must be usable after a stream was closed early")


def _check_agent(link: PlugInLink, url: str, folder: str) -> None:
    """The SDK's own program runs there: it is copied, started and asked."""
    place = RemotePlace(UrlAddress(url), folder=folder)
    device = Device(_NAME, TRANSPORTS.noun, "any", Clock.WALL, 1, uses_host_cores=False, remote=place)
    cache = ContentCache(read_settings().cache_folder)
    session = AgentSession(link, device, lambda machine: agent_for(machine, cache))
    with contextlib.closing(session):
        session.connect()
        sense_device(session, ())


def _output(link: PlugInLink, *words: str) -> bytes:
    return b"".join(link.stream(list(words)))
