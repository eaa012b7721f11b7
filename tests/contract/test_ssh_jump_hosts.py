"""Devices behind jump hosts, which are real servers, too."""

from __future__ import annotations

import subprocess

import pytest

from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.remote_place import SshAddress
from halide_autotune.devices.ssh.link import SshLink
from tests.contract.conftest import StartServer
from tests.ssh_access import SshAccess, refusal, shown_fingerprint, works
from tests.sshd_server import SSHD

pytestmark = [
    pytest.mark.skipif(SSHD is None, reason="sshd is not installed"),
    pytest.mark.usefixtures("no_agent"),
]


def test_two_jump_hosts(access: SshAccess, start_server: StartServer) -> None:
    outer, inner, board = start_server(), start_server(), start_server()
    access.trust(outer, inner, board)
    jump = tuple(f"{one.user}@127.0.0.1:{one.port}" for one in (outer, inner))
    link = SshLink("board", access.address(board, jump=jump), access.settings())
    link.connect()
    assert [len(one.sessions()) > 0 for one in (outer, inner, board)] == [True] * 3
    assert b"".join(link.stream(["echo", "ok"])) == b"ok\n"
    inner.kill()
    with pytest.raises(DeviceTrouble) as caught:
        list(link.stream(["echo", "ok"]))
    assert caught.value.kind is TroubleKind.LOST


@pytest.mark.usefixtures("any_reader")
def test_jump_hosts_of_the_configuration(access: SshAccess, start_server: StartServer) -> None:
    outer, inner, board = start_server(), start_server(), start_server()
    access.trust(outer, inner, board)
    common = f"HostName 127.0.0.1\n  User {outer.user}\n  IdentityFile {access.key}\n"
    access.config.write_text(
        f"Host outer\n  Port {outer.port}\n  {common}"
        f"Host inner\n  Port {inner.port}\n  ProxyJump outer\n  {common}"
        f"Host board\n  Port {board.port}\n  ProxyJump inner\n  {common}"
    )
    link = SshLink("board", SshAddress("board"), access.settings())
    link.connect()
    assert [len(one.sessions()) > 0 for one in (outer, inner, board)] == [True] * 3
    link.close()
    # An address that is reached directly says so.
    assert works(SshLink("board", SshAddress("board", jump=("none",)), access.settings()))


def test_an_unknown_device_behind_a_jump_host_is_trusted_by_ssh(access: SshAccess, start_server: StartServer) -> None:
    jump, board = start_server(), start_server()
    access.trust(jump)
    board.authorize(access.key.with_suffix(".pub"))
    address = access.address(board, jump=(f"{jump.user}@127.0.0.1:{jump.port}",))
    link = SshLink("board", address, access.settings())
    trouble = refusal(link)
    assert shown_fingerprint(board.host_key()) in trouble.message
    words = trouble.next_step.partition("trust the key: ")[2]
    assert f"-J {jump.user}@127.0.0.1:{jump.port}" in words
    # What a user would do, with the question answered and the keys of this test.
    words = words.replace("ssh ", f"ssh -F {access.config} -o StrictHostKeyChecking=accept-new ", 1)
    access.config.write_text(f"IdentityFile {access.key}\nUserKnownHostsFile {access.known_hosts}\n")
    subprocess.run(["sh", "-c", words], check=True, capture_output=True, stdin=subprocess.DEVNULL)
    assert works(link)


def test_an_unknown_jump_host_is_refused(access: SshAccess, start_server: StartServer) -> None:
    jump, board = start_server(), start_server()
    access.trust(board)
    jump.authorize(access.key.with_suffix(".pub"))
    address = access.address(board, jump=(f"{jump.user}@127.0.0.1:{jump.port}",))
    trouble = refusal(SshLink("board", address, access.settings()))
    assert f"127.0.0.1:{jump.port} is not known" in trouble.message
    assert shown_fingerprint(jump.host_key()) in trouble.message
    assert not board.sessions()


def test_a_jump_host_that_forwards_nothing_is_told(access: SshAccess, start_server: StartServer) -> None:
    jump, board = start_server(settings=["AllowTcpForwarding no"]), start_server()
    access.trust(jump, board)
    address = access.address(board, jump=(f"{jump.user}@127.0.0.1:{jump.port}",))
    assert "does not forward" in refusal(SshLink("board", address, access.settings())).message


def test_a_device_that_its_jump_host_cannot_reach(access: SshAccess, start_server: StartServer) -> None:
    jump, board = start_server(), start_server()
    access.trust(jump, board)
    board.kill()
    address = access.address(board, jump=(f"{jump.user}@127.0.0.1:{jump.port}",))
    trouble = refusal(SshLink("board", address, access.settings()), TroubleKind.UNREACHABLE)
    assert f"the jump host {jump.user}@127.0.0.1:{jump.port} cannot connect to it" in trouble.message
