"""Passwords: who is asked, what is sent, and to whom."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.devices.device_trouble import TroubleKind
from halide_autotune.devices.remote_place import PasswordSource, SshAddress
from halide_autotune.devices.ssh.link import SshLink
from tests.password_server import PASSWORD, USER, PasswordServer
from tests.ssh_access import SshAccess, refusal, works
from tests.sshd_server import make_key

pytestmark = [
    pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed"),
    pytest.mark.usefixtures("no_agent"),
]

StartPasswordServer = Callable[..., PasswordServer]


@pytest.fixture
def start_password_server(tmp_path: Path, access: SshAccess) -> Iterator[StartPasswordServer]:
    started: list[PasswordServer] = []
    key = make_key(tmp_path / "password_server")

    def start(**fields: Any) -> PasswordServer:
        server = PasswordServer(key, **fields)
        started.append(server)
        public = " ".join(key.with_suffix(".pub").read_text().split()[:2])
        access.known_hosts.write_text(f"[127.0.0.1]:{server.port} {public}\n")
        return server

    yield start
    for server in started:
        server.stop()


@pytest.mark.parametrize("method", ["password", "keyboard-interactive"])
def test_a_password_that_is_asked_for(
    access: SshAccess, start_password_server: StartPasswordServer, method: str
) -> None:
    server = start_password_server(methods=(method,))
    asked: list[str] = []

    def ask(question: str) -> str:
        asked.append(question)
        return PASSWORD

    address = SshAddress("127.0.0.1", server.port, USER, password_source=PasswordSource.PROMPT)
    link = SshLink("board", address, access.settings(), ask)
    assert works(link)
    assert works(link)
    assert asked == [f"Password for {USER}@127.0.0.1:{server.port}: "]
    assert server.answers == [PASSWORD, PASSWORD]


def test_a_password_that_was_given_is_for_this_device(
    access: SshAccess, start_password_server: StartPasswordServer
) -> None:
    server = start_password_server()
    address = SshAddress("127.0.0.1", server.port, USER)
    settings = access.settings(secrets=(("other", "wrong"), ("board", PASSWORD)))
    assert works(SshLink("board", address, settings))
    assert "Tried: a password." in refusal(SshLink("other", address, settings)).message


def test_a_wrong_password_is_asked_for_again(access: SshAccess, start_password_server: StartPasswordServer) -> None:
    server = start_password_server()
    answers = ["wrong secret", PASSWORD]
    address = SshAddress("127.0.0.1", server.port, USER, password_source=PasswordSource.PROMPT)
    link = SshLink("board", address, access.settings(), lambda question: answers.pop(0))
    trouble = refusal(link)
    assert "wrong secret" not in str(trouble) + repr(link) + repr(vars(link))
    assert works(link)


def test_a_second_question_gets_no_password(access: SshAccess, start_password_server: StartPasswordServer) -> None:
    questions = ((("Password: ", False),), (("New password: ", False),), (("Name: ", True), ("Code: ", False)))
    server = start_password_server(methods=("keyboard-interactive",), questions=questions)
    settings = access.settings(secrets=(("board", PASSWORD),))
    refusal(SshLink("board", SshAddress("127.0.0.1", server.port, USER), settings))
    assert server.answers == [PASSWORD, "", "", ""]


def test_a_question_that_is_shown_gets_no_password(
    access: SshAccess, start_password_server: StartPasswordServer
) -> None:
    server = start_password_server(methods=("keyboard-interactive",), questions=((("Name: ", True),),))
    settings = access.settings(secrets=(("board", PASSWORD),))
    refusal(SshLink("board", SshAddress("127.0.0.1", server.port, USER), settings))
    assert server.answers == [""]


def test_a_board_without_any_password(access: SshAccess, start_password_server: StartPasswordServer) -> None:
    server = start_password_server(methods=("none",))
    assert works(SshLink("board", SshAddress("127.0.0.1", server.port, USER), access.settings()))


def test_nobody_can_be_asked(access: SshAccess, start_password_server: StartPasswordServer) -> None:
    server = start_password_server()
    address = SshAddress("127.0.0.1", server.port, USER, password_source=PasswordSource.PROMPT)
    assert "Tried: nothing" in refusal(SshLink("board", address, access.settings())).message


def test_a_server_that_takes_only_passwords_is_not_said_to_lack_a_key(
    access: SshAccess, start_password_server: StartPasswordServer
) -> None:
    server = start_password_server(methods=("password",))
    trouble = refusal(
        SshLink("board", SshAddress("127.0.0.1", server.port, USER, identity_file=access.key), access.settings())
    )
    assert "it accepts password. Tried: nothing: there is no password." in trouble.message
    assert trouble.next_step == "Give the device password = 'prompt' in the inventory."


def test_no_password_is_sent_to_an_unknown_host(access: SshAccess, start_password_server: StartPasswordServer) -> None:
    server = start_password_server()
    access.known_hosts.write_text("")
    settings = access.settings(secrets=(("board", PASSWORD),))
    refusal(SshLink("board", SshAddress("127.0.0.1", server.port, USER), settings))
    assert server.answers == []


def test_a_device_password_is_not_sent_to_a_jump_host(
    access: SshAccess, start_password_server: StartPasswordServer
) -> None:
    jump = start_password_server()
    settings = access.settings(secrets=(("board", PASSWORD),))
    address = SshAddress("192.0.2.1", 22, USER, jump=(f"{USER}@127.0.0.1:{jump.port}",))
    assert f"127.0.0.1:{jump.port} rejects the login" in refusal(SshLink("board", address, settings)).message
    assert jump.answers == []


def test_a_connection_lost_while_logging_in_is_not_a_refusal(
    access: SshAccess, start_password_server: StartPasswordServer
) -> None:
    server = start_password_server(attempts=1)
    settings = access.settings(secrets=(("board", "wrong"),))
    address = SshAddress("127.0.0.1", server.port, USER)
    assert "while logging in" in refusal(SshLink("board", address, settings), TroubleKind.LOST).message
