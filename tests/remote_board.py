"""Devices behind a wire that can be made to fail: a real sshd, or an emulated Android device, each behind a proxy."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from halide_autotune.devices.agent.program import agent_for
from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.remote.open import open_link
from halide_autotune.devices.remote.shared_connection import shared_connection
from halide_autotune.devices.remote.transport import AgentTransport
from halide_autotune.devices.remote_place import AdbAddress, ConnectionSettings, RemotePlace, SshAddress
from halide_autotune.targets.process.content_cache import ContentCache
from tests.adb_device.adb_device import AdbDevice
from tests.fault_proxy import FaultProxy
from tests.ssh_access import SshAccess
from tests.sshd_server import SshdServer


class RemoteBoard:
    """A board of a lab. Every byte between it and its users passes `proxy`, where faults are switched on.

    Attributes:
        name: its name in an inventory.
        proxy: the wire.
        connections: what users reach it with.
        place: where it is.
    """

    def __init__(self, name: str, proxy: FaultProxy, connections: ConnectionSettings, place: RemotePlace) -> None:
        self.name = name
        self.proxy = proxy
        self.connections = connections
        self.place = place

    def transport(
        self, cache: ContentCache, owner: str = "tester@here", lease_ttl_s: float = 120.0, slot: int = 0
    ) -> AgentTransport:
        """A transport of another user; not yet connected."""
        place = replace(self.place, slot=slot)
        device = Device(self.name, "ssh", "x86-64", Clock.WALL, 1, uses_host_cores=False, remote=place)
        link = open_link(self.name, self.place.address, self.connections)
        connection = shared_connection(link, device, partial(agent_for, cache=cache), owner, lease_ttl_s=lease_ttl_s)
        return AgentTransport(connection, device)

    def inventory_entry(self, profile: str = "x86-64") -> str:
        """Its table in a devices.toml."""
        lines = [f"[devices.{self.name}]", f'profile = "{profile}"', "performance_mode = false"]
        address = self.place.address
        if isinstance(address, SshAddress):
            lines += ['transport = "ssh"', f'identity_file = "{address.identity_file}"']
            lines += [f'address = "{address.user}@{address.host}:{address.port}"']
        elif isinstance(address, AdbAddress):
            lines += ['transport = "adb"', f'address = "{address.host}:{address.port}"']
        lines += [f"lease_folder = {json.dumps(self.place.lease_folder)}"]
        if self.place.folder is not None:
            lines += [f"folder = {json.dumps(self.place.folder)}"]
        return "\n".join(lines) + "\n"


class SshBoard(RemoteBoard):
    """A board with a real OpenSSH server.

    Attributes:
        server: the server behind the wire.
        access: the user's keys and known hosts.
    """

    def __init__(self, name: str, proxy: FaultProxy, server: SshdServer, access: SshAccess, folder: Path) -> None:
        address = replace(access.address(server), port=proxy.port)
        place = RemotePlace(
            address, folder=str(folder / "work"), lease_folder=str(folder / "leases"), performance_mode=False
        )
        super().__init__(name, proxy, access.settings(), place)
        self.server = server
        self.access = access


class AdbBoard(RemoteBoard):
    """An emulated Android device.

    Attributes:
        phone: the device behind the wire.
    """

    def __init__(self, name: str, proxy: FaultProxy, phone: AdbDevice, connections: ConnectionSettings) -> None:
        place = RemotePlace(
            AdbAddress("127.0.0.1", proxy.port),
            lease_folder=str(phone.temporary / "leases"),
            performance_mode=False,
        )
        super().__init__(name, proxy, connections, place)
        self.phone = phone


@contextlib.contextmanager
def ssh_board(folder: Path, name: str = "board") -> Iterator[SshBoard]:
    """A board that lets its user in."""
    access = SshAccess(folder / "user")
    server = SshdServer(folder / "server")
    server.start()
    try:
        with FaultProxy(server.port) as proxy:
            server.authorize(access.key.with_suffix(".pub"))
            # The user knows the board by the address of the wire.
            known = server.known_hosts_lines().replace(f":{server.port} ", f":{proxy.port} ")
            access.known_hosts.write_text(known)
            yield SshBoard(name, proxy, server, access, folder)
    finally:
        server.kill()


@contextlib.contextmanager
def adb_board(folder: Path, name: str = "phone") -> Iterator[AdbBoard]:
    """A phone that lets every key in."""
    connections = SshAccess(folder / "user").settings()
    with AdbDevice(folder / "phone") as phone, FaultProxy(phone.port) as proxy:
        yield AdbBoard(name, proxy, phone, connections)
