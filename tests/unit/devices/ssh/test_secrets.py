from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import keyring
import keyring.backend
import keyring.backends.fail
import pytest
from keyring.errors import KeyringLocked

from halide_autotune.devices.remote_place import ConnectionSettings, PasswordSource, SshAddress
from halide_autotune.devices.ssh.route import SshHop, plan_route
from halide_autotune.devices.ssh.secrets import (
    KEYRING_SERVICE,
    SshSecrets,
    keyring_account,
    read_keyring,
    write_keyring,
)
from halide_autotune.targets.errors import DeviceError


class MemoryKeyring(keyring.backend.KeyringBackend):
    """A backend of the real keyring package that keeps everything here."""

    priority = 1.0

    def __init__(self) -> None:
        super().__init__()
        self.stored: dict[tuple[str, str], str] = {}
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.locked:
            raise KeyringLocked("secret detail")
        return self.stored.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.locked:
            raise KeyringLocked("secret detail")
        self.stored[service, username] = password


@pytest.fixture
def memory() -> Iterator[MemoryKeyring]:
    before = keyring.get_keyring()
    backend = MemoryKeyring()
    keyring.set_keyring(backend)
    yield backend
    keyring.set_keyring(before)


@pytest.fixture
def connections(tmp_path: Path) -> ConnectionSettings:
    return ConnectionSettings(tmp_path / "config", tmp_path / "known_hosts", (), tmp_path / "adbkey", "me", tmp_path)


@pytest.fixture
def hop(connections: ConnectionSettings) -> SshHop:
    return plan_route(SshAddress("board", 2222, "pi"), connections)[-1]


def test_the_keyring_has_it_under_the_resolved_name(
    memory: MemoryKeyring, connections: ConnectionSettings, hop: SshHop
) -> None:
    connections.ssh_config_file.write_text("Host alias\n  HostName board\n  Port 2222\n  User pi\n")
    account = keyring_account(SshAddress("alias"), connections)
    write_keyring(account, "secret")
    assert memory.stored == {(KEYRING_SERVICE, "pi@board:2222"): "secret"}
    assert SshSecrets("board", PasswordSource.KEYRING, {}, None).password(hop) == "secret"


def test_a_missing_entry_names_the_command(memory: MemoryKeyring, hop: SshHop) -> None:
    with pytest.raises(DeviceError, match="no password for pi@board:2222") as caught:
        SshSecrets("my-board", PasswordSource.KEYRING, {}, None).password(hop)
    assert "sdk devices password my-board" in caught.value.next_step


def test_a_locked_keyring_is_told_without_details(memory: MemoryKeyring) -> None:
    memory.locked = True
    for call in (lambda: read_keyring("x"), lambda: write_keyring("x", "secret")):
        with pytest.raises(DeviceError, match="KeyringLocked") as caught:
            call()
        assert "secret" not in str(caught.value)


def test_no_keyring_at_all_is_told() -> None:
    before = keyring.get_keyring()
    keyring.set_keyring(keyring.backends.fail.Keyring())
    try:
        with pytest.raises(DeviceError, match="NoKeyringError"):
            read_keyring("x")
    finally:
        keyring.set_keyring(before)


def test_a_missing_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(DeviceError, match="not installed") as caught:
        read_keyring("x")
    assert "pip install keyring" in caught.value.next_step


def test_what_was_given_comes_first(memory: MemoryKeyring, hop: SshHop) -> None:
    secrets = SshSecrets("board", PasswordSource.KEYRING, {"board": "given"}, None)
    assert secrets.password(hop) == "given"
    assert secrets.passphrase(Path("/key"), hop) == "given"
    assert "given" not in repr(secrets)


def test_answers_are_remembered_until_they_prove_wrong(hop: SshHop) -> None:
    asked: list[str] = []

    def ask(question: str) -> str:
        asked.append(question)
        return f"answer {len(asked)}"

    secrets = SshSecrets("board", PasswordSource.PROMPT, {}, ask)
    assert [secrets.password(hop), secrets.password(hop)] == ["answer 1"] * 2
    assert secrets.passphrase(Path("/key"), hop) == "answer 2"
    secrets.forget()
    assert secrets.password(hop) == "answer 3"
    assert asked == ["Password for pi@board:2222: ", "Passphrase for /key: ", "Password for pi@board:2222: "]


def test_without_a_source_there_is_none(hop: SshHop) -> None:
    assert SshSecrets("board", PasswordSource.NONE, {}, lambda question: "x").password(hop) is None
    assert SshSecrets("board", PasswordSource.PROMPT, {}, None).password(hop) is None
