"""How SshLink gets in: host keys, keys, the agent, passwords."""

from __future__ import annotations

import gc
import logging
import re
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.remote_place import PasswordSource, SshAddress
from halide_autotune.devices.ssh import authentication
from halide_autotune.devices.ssh.link import SshLink
from tests.contract.conftest import StartServer
from tests.ssh_access import SshAccess, refusal, shown_fingerprint, works
from tests.sshd_server import SSHD, SshdServer, make_key

pytestmark = [
    pytest.mark.skipif(SSHD is None, reason="sshd is not installed"),
    pytest.mark.usefixtures("no_agent"),
]

PASSPHRASE = "päss phrase"


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], None]]:
    """A real agent; called with a private key, it holds that one too."""

    def add(key: Path) -> None:
        subprocess.run(["ssh-add", "-q", str(key)], check=True, stdin=subprocess.DEVNULL)

    # The path of a socket has at most 107 characters.
    with tempfile.TemporaryDirectory(prefix="agent-", dir="/tmp") as folder:
        path = f"{folder}/agent"
        process = subprocess.Popen(["ssh-agent", "-D", "-a", path], stdout=subprocess.DEVNULL)
        try:
            with socket.socket(socket.AF_UNIX) as asking:
                while asking.connect_ex(path) != 0:
                    assert process.poll() is None
                    time.sleep(0.01)
            monkeypatch.setenv("SSH_AUTH_SOCK", path)
            yield add
        finally:
            process.terminate()
            process.wait()


def test_an_unknown_host_is_refused_with_the_command_that_trusts_it(access: SshAccess, server: SshdServer) -> None:
    server.authorize(access.key.with_suffix(".pub"))
    link = SshLink("board", access.address(server), access.settings())
    trouble = refusal(link)
    assert shown_fingerprint(server.host_key()) in trouble.message
    assert f"{server.user}@127.0.0.1:{server.port}" in trouble.message
    assert access.known_hosts.read_text() == ""
    command = trouble.next_step.partition("trust the key: ")[2]
    assert command.startswith(f"ssh-keyscan -p {server.port} ")
    subprocess.run(["sh", "-c", command], check=True, capture_output=True)
    assert works(link)


def test_a_changed_key_is_refused_with_the_command_that_forgets_it(access: SshAccess, server: SshdServer) -> None:
    access.known_hosts.write_text("# a comment\n")
    access.trust(server)
    link = SshLink("board", access.address(server), access.settings())
    assert works(link)
    old = shown_fingerprint(server.host_key())
    server.kill()
    server.change_host_key()
    server.start()
    trouble = refusal(link)
    assert f"line 2 of {access.known_hosts}" in trouble.message
    assert old in trouble.message
    assert shown_fingerprint(server.host_key()) in trouble.message
    subprocess.run(["sh", "-c", trouble.next_step.partition("old key: ")[2]], check=True, capture_output=True)
    assert "is not known" in refusal(link).message


@pytest.mark.parametrize("known", ["ed25519", "ecdsa", "rsa"])
def test_the_server_is_asked_for_the_type_that_is_known(
    access: SshAccess, start_server: StartServer, known: str
) -> None:
    server = start_server(key_types=("ed25519", "ecdsa", "rsa"))
    access.trust(server)
    name = {"ed25519": "ssh-ed25519", "ecdsa": "ecdsa-sha2-nistp256", "rsa": "ssh-rsa"}[known]
    lines = access.known_hosts.read_text().splitlines()
    access.known_hosts.write_text("".join(f"{line}\n" for line in lines if f" {name} " in line))
    assert works(SshLink("board", access.address(server), access.settings()))


def test_a_key_of_another_type_only_is_not_known(access: SshAccess, start_server: StartServer, tmp_path: Path) -> None:
    server = start_server(key_types=("ed25519",))
    access.trust(server)
    other = make_key(tmp_path / "other", "ecdsa").with_suffix(".pub").read_text()
    access.known_hosts.write_text(f"[127.0.0.1]:{server.port} {other}")
    trouble = refusal(SshLink("board", access.address(server), access.settings()))
    assert "only a key of another type (ECDSA)" in trouble.message
    assert "ED25519" in trouble.message


def test_a_hashed_known_hosts_is_read(access: SshAccess, server: SshdServer) -> None:
    access.trust(server)
    subprocess.run(["ssh-keygen", "-H", "-f", str(access.known_hosts)], check=True, capture_output=True)
    assert "127.0.0.1" not in access.known_hosts.read_text()
    assert works(SshLink("board", access.address(server), access.settings()))


def test_a_revoked_key_is_refused(access: SshAccess, server: SshdServer) -> None:
    access.trust(server)
    public = " ".join(server.host_key().with_suffix(".pub").read_text().split()[:2])
    with access.known_hosts.open("a") as file:
        file.write(f"@revoked * {public}\n")
    assert "is revoked by line 2" in refusal(SshLink("board", access.address(server), access.settings())).message


@pytest.mark.usefixtures("any_reader")
@pytest.mark.parametrize("option", ["GlobalKnownHostsFile", "RevokedHostKeys"])
def test_a_key_that_the_administrator_has_revoked_is_refused(
    access: SshAccess, server: SshdServer, tmp_path: Path, option: str
) -> None:
    access.trust(server)
    public = " ".join(server.host_key().with_suffix(".pub").read_text().split()[:2])
    revoked = tmp_path / "revoked"
    revoked.write_text(f"@revoked * {public}\n" if option == "GlobalKnownHostsFile" else f"# stolen\n{public} board\n")
    access.config.write_text(f"Host *\n  {option} {revoked}\n")
    trouble = refusal(SshLink("board", access.address(server), access.settings()))
    assert re.search(rf"is revoked by (line 1 of )?{re.escape(str(revoked))}\.", trouble.message)


def test_a_certificate_authority_is_said_to_be_unsupported(access: SshAccess, server: SshdServer) -> None:
    access.trust(server)
    access.known_hosts.write_text(f"@cert-authority {access.known_hosts.read_text()}")
    trouble = refusal(SshLink("board", access.address(server), access.settings()))
    assert "certificate authority" in trouble.message
    assert "not supported" in trouble.message


@pytest.mark.usefixtures("any_reader")
def test_a_name_of_the_configuration_is_enough(access: SshAccess, server: SshdServer) -> None:
    access.trust(server)
    access.config.write_text(
        f'Host board "weird *" böard-$(id)\n  HostName 127.0.0.1\n  Port {server.port}  # lab\n  User {server.user}\n'
        f'  IdentityFile "{access.key}"\n  IdentitiesOnly yes\n'
    )
    assert works(SshLink("board", SshAddress("board"), access.settings()))
    for name in ("böard-$(id)", "weird name"):
        # Later versions of ssh refuse such names, and nobody has them in a configuration then.
        if access.ssh_program is None or _takes_name(access.ssh_program, name):
            assert works(SshLink("board", SshAddress(name), access.settings()))


@pytest.mark.usefixtures("any_reader")
def test_host_key_alias_and_known_hosts_of_the_configuration_count(
    access: SshAccess, server: SshdServer, tmp_path: Path
) -> None:
    access.trust(server)
    key = access.known_hosts.read_text().partition(" ")[2]
    access.known_hosts.write_text("")
    known_hosts = tmp_path / "known hosts"
    known_hosts.write_text(f"farm-board {key}")
    access.config.write_text(f'HostKeyAlias farm-board\nUserKnownHostsFile "{known_hosts}"\n')
    link = SshLink("board", access.address(server), access.settings())
    assert works(link)
    known_hosts.write_text("")
    trouble = refusal(link)
    assert "HostKeyAlias=farm-board" in trouble.next_step
    assert str(known_hosts) in trouble.next_step


def test_ipv6(access: SshAccess, start_server: StartServer) -> None:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            pass
    except OSError:
        pytest.skip("this machine has no IPv6")
    server = start_server(address="::1")
    access.trust(server)
    assert works(SshLink("board", access.address(server), access.settings()))


def test_nobody_listens(access: SshAccess, server: SshdServer) -> None:
    access.trust(server)
    server.kill()
    trouble = refusal(SshLink("board", access.address(server), access.settings()), TroubleKind.UNREACHABLE)
    assert f"127.0.0.1:{server.port} cannot be reached: connection refused" in trouble.message


@pytest.mark.parametrize("host", ["no-such-host.invalid", "x" * 300 + ".invalid", "ü" * 70])
def test_there_is_no_such_host(access: SshAccess, host: str) -> None:
    trouble = refusal(SshLink("board", SshAddress(host, user="pi"), access.settings()), TroubleKind.UNREACHABLE)
    assert "unknown host name" in trouble.message


def test_something_that_says_nothing(access: SshAccess) -> None:
    access.config.write_text("ConnectTimeout 1\n")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = SshAddress("127.0.0.1", listener.getsockname()[1], "pi")
        trouble = refusal(SshLink("board", address, access.settings()), TroubleKind.UNREACHABLE)
    assert "exchanges no keys within 1 s" in trouble.message


def test_something_that_speaks_no_ssh(access: SshAccess, server: SshdServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = SshAddress("127.0.0.1", listener.getsockname()[1], "pi")
        link = SshLink("board", address, access.settings())

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        answering = threading.Thread(target=answer)
        answering.start()
        trouble = refusal(link, TroubleKind.UNREACHABLE)
        answering.join()
    assert "does not speak SSH" in trouble.message


def test_a_frozen_server_is_given_up_while_connecting(access: SshAccess, server: SshdServer) -> None:
    access.trust(server)
    access.config.write_text("ConnectTimeout 1\n")
    server.freeze()
    refusal(SshLink("board", access.address(server), access.settings()), TroubleKind.UNREACHABLE)
    server.thaw()


def test_a_key_that_is_not_let_in_is_told(access: SshAccess, server: SshdServer, tmp_path: Path) -> None:
    access.trust(server)
    stranger = make_key(tmp_path / "stranger")
    trouble = refusal(SshLink("board", access.address(server, identity_file=stranger), access.settings()))
    assert f"Tried: {stranger}." in trouble.message
    assert "accepts publickey" in trouble.message
    assert f"ssh-copy-id -p {server.port} {server.user}@127.0.0.1" in trouble.next_step


@pytest.mark.parametrize("key_type", ["ed25519", "ecdsa", "rsa"])
def test_keys_of_every_type_are_let_in(access: SshAccess, server: SshdServer, tmp_path: Path, key_type: str) -> None:
    access.trust(server)
    key = make_key(tmp_path / key_type, key_type)
    server.authorize(key.with_suffix(".pub"))
    assert works(SshLink("board", access.address(server, identity_file=key), access.settings()))


def test_the_usual_keys_are_tried(access: SshAccess, server: SshdServer, tmp_path: Path) -> None:
    access.trust(server)
    settings = access.settings((tmp_path / "id_missing", access.key))
    assert works(SshLink("board", access.address(server, identity_file=None), settings))


def test_a_key_that_others_can_read_is_refused(access: SshAccess, server: SshdServer) -> None:
    access.trust(server)
    access.key.chmod(0o640)
    trouble = refusal(SshLink("board", access.address(server), access.settings()))
    assert f"{access.key} (skipped, because others can read it: run chmod 600)" in trouble.message


def test_an_encrypted_key_is_opened_by_the_passphrase_that_was_asked_for(
    access: SshAccess, server: SshdServer, tmp_path: Path
) -> None:
    access.trust(server)
    key = make_key(tmp_path / "locked", passphrase=PASSPHRASE)
    server.authorize(key.with_suffix(".pub"))
    asked: list[str] = []

    def ask(question: str) -> str:
        asked.append(question)
        return PASSPHRASE

    address = access.address(server, identity_file=key, password_source=PasswordSource.PROMPT)
    link = SshLink("board", address, access.settings(), ask)
    assert works(link)
    assert works(link)
    assert asked == [f"Passphrase for {key}: "]


def test_an_encrypted_key_without_a_passphrase_is_told(access: SshAccess, server: SshdServer, tmp_path: Path) -> None:
    access.trust(server)
    key = make_key(tmp_path / "locked", passphrase=PASSPHRASE)
    trouble = refusal(SshLink("board", access.address(server, identity_file=key), access.settings()))
    assert "encrypted" in trouble.message
    assert "encrypted, and there is no passphrase" in trouble.message


def test_a_wrong_passphrase_is_told_without_it(access: SshAccess, server: SshdServer, tmp_path: Path) -> None:
    access.trust(server)
    key = make_key(tmp_path / "locked", passphrase=PASSPHRASE)
    settings = access.settings(secrets=(("board", "wrong secret"),))
    trouble = refusal(SshLink("board", access.address(server, identity_file=key), settings))
    assert "the passphrase is wrong" in trouble.message
    assert "wrong secret" not in repr(trouble) + str(trouble.__cause__) + repr(settings)


def test_the_agents_keys_let_in(
    access: SshAccess, server: SshdServer, agent: Callable[[Path], None], tmp_path: Path
) -> None:
    access.trust(server)
    agent(make_key(tmp_path / "stranger", "ecdsa"))
    agent(access.key)
    access.key.unlink()
    assert works(SshLink("board", access.address(server, identity_file=None), access.settings()))


def test_an_encrypted_key_is_used_through_the_agent(
    access: SshAccess, server: SshdServer, agent: Callable[[Path], None], tmp_path: Path
) -> None:
    access.trust(server)
    # Unlocked for the agent, then locked: there is no way but the agent. The stranger is passed over.
    agent(make_key(tmp_path / "stranger"))
    agent(access.key)
    subprocess.run(["ssh-keygen", "-q", "-p", "-N", PASSPHRASE, "-f", str(access.key)], check=True, capture_output=True)
    server_log_before = server.log().count("Failed publickey")
    assert works(SshLink("board", access.address(server), access.settings()))
    assert server.log().count("Failed publickey") == server_log_before


@pytest.mark.usefixtures("any_reader")
def test_only_named_keys_of_the_agent_are_shown(
    access: SshAccess, server: SshdServer, agent: Callable[[Path], None], tmp_path: Path
) -> None:
    access.trust(server)
    agent(access.key)
    named = make_key(tmp_path / "named")
    access.config.write_text(f"IdentityFile {named}\nIdentitiesOnly yes\n")
    trouble = refusal(SshLink("board", access.address(server, identity_file=None), access.settings()))
    assert f"Tried: {named}." in trouble.message


# Paramiko leaves the socket that it could not connect to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_agent_that_is_gone_is_passed_over(
    access: SshAccess, server: SshdServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    access.trust(server)
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "gone"))
    assert works(SshLink("board", access.address(server), access.settings()))


# Paramiko leaves its socket to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_agent_that_does_not_answer_is_passed_over(
    access: SshAccess, server: SshdServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that waits for its user to unlock it, or that is forwarded from a machine that sleeps."""
    monkeypatch.setattr(authentication, "_AGENT_LIMIT_S", 0.2)
    access.trust(server)
    with tempfile.TemporaryDirectory(prefix="agent-", dir="/tmp") as folder, socket.socket(socket.AF_UNIX) as silent:
        silent.bind(f"{folder}/agent")
        silent.listen()
        monkeypatch.setenv("SSH_AUTH_SOCK", f"{folder}/agent")
        assert works(SshLink("board", access.address(server), access.settings()))
        unknown = make_key(Path(folder) / "stranger")
        trouble = refusal(SshLink("board", access.address(server, identity_file=unknown), access.settings()))
        assert "the agent (does not answer)" in trouble.message
    for thread in threading.enumerate():
        if thread.name == authentication.AGENT_THREAD:
            thread.join(60.0)
    gc.collect()


def test_too_many_keys_are_told(
    access: SshAccess, start_server: StartServer, agent: Callable[[Path], None], tmp_path: Path
) -> None:
    server = start_server(settings=["MaxAuthTries 3"])
    access.trust(server)
    for number in range(6):
        agent(make_key(tmp_path / f"stranger{number}"))
    trouble = refusal(SshLink("board", access.address(server, identity_file=None), access.settings()))
    assert "after this many attempts" in trouble.message
    assert trouble.message.count("the agent's key") >= 3


def test_a_key_and_a_password_together(access: SshAccess, start_server: StartServer) -> None:
    server = start_server(settings=["AuthenticationMethods publickey,password", "PasswordAuthentication yes"])
    access.trust(server)
    settings = access.settings(secrets=(("board", "not the password"),))
    trouble = refusal(SshLink("board", access.address(server), settings))
    assert f"Tried: {access.key}; a password." in trouble.message


def test_paramiko_logs_nothing(
    access: SshAccess, server: SshdServer, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    access.trust(server)
    link = SshLink("board", access.address(server), access.settings())
    with caplog.at_level(logging.DEBUG):
        assert works(link)
        link.connect()
        server.kill()
        with pytest.raises(DeviceTrouble):
            list(link.stream(["true"]))
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("any_reader")
def test_the_address_wins_over_the_configuration(access: SshAccess, server: SshdServer) -> None:
    access.trust(server)
    access.config.write_text("Host *\n  Port 1\n  User nobody\n  IdentityFile /no/such/file\n  ProxyJump nowhere\n")
    address = replace(access.address(server), jump=("none",))
    assert works(SshLink("board", address, access.settings()))


def _takes_name(ssh: Path, name: str) -> bool:
    command = [str(ssh), "-G", "-F", "none", "--", name]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0
