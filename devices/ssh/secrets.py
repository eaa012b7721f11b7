"""Passwords and passphrases of SSH devices: asked for, or from the system's keyring."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from halide_autotune.devices.remote_place import ConnectionSettings, PasswordSource, SshAddress
from halide_autotune.devices.ssh.route import SshHop, plan_route
from halide_autotune.targets.errors import DeviceError

KEYRING_SERVICE = "halide-autotune-sdk"


class SshSecrets:
    """The secrets of one device. An answer is remembered until it proves wrong.

    Args:
        name: the device's, for questions and messages.
        source: where the password comes from, by the inventory.
        given: secrets that were asked for before, by device name.
        ask: asks a person; None where nobody can be asked.
    """

    def __init__(
        self, name: str, source: PasswordSource, given: Mapping[str, str], ask: Callable[[str], str] | None
    ) -> None:
        self._name = name
        self._source = source
        self._given = given.get(name)
        self._ask = ask
        self._remembered: dict[str, str] = {}

    def password(self, hop: SshHop) -> str | None:
        """The password for a hop; None when there is none. One that was given is for the device alone.

        Raises:
            DeviceError: the keyring cannot be used, or has no password for it.
        """
        if hop.is_device and self._given is not None:
            return self._given
        return self._find(hop.place, f"Password for {hop.place}: ", hop)

    def passphrase(self, key_file: Path, hop: SshHop) -> str | None:
        """The passphrase of a private key; None when there is none.

        Raises:
            DeviceError: the keyring cannot be used, or has none.
        """
        if self._given is not None:
            return self._given
        return self._find(str(key_file), f"Passphrase for {key_file}: ", hop)

    def forget(self) -> None:
        """Ask again the next time."""
        self._remembered.clear()

    def _find(self, what: str, question: str, hop: SshHop) -> str | None:
        ask = self._ask if self._source is PasswordSource.PROMPT else None
        if ask is None and self._source is not PasswordSource.KEYRING:
            return None
        if what not in self._remembered:
            secret = ask(question) if ask is not None else read_keyring(hop.place)
            if secret is None:
                raise DeviceError(
                    f"the keyring has no password for {hop.place}",
                    next_step=f"Store it: sdk devices password {self._name}",
                )
            self._remembered[what] = secret
        return self._remembered[what]


def keyring_account(address: SshAddress, connections: ConnectionSettings) -> str:
    """The name that a device's password has in the keyring: user@host:port, as the connection will be made.

    Raises:
        DeviceTrouble: the SSH configuration cannot be used.
    """
    return plan_route(address, connections)[-1].place


def read_keyring(account: str) -> str | None:
    """The password stored for an account; None when there is none.

    Raises:
        DeviceError: there is no keyring, or it is locked.
    """
    with _opened_keyring() as keyring:
        password: str | None = keyring.get_password(KEYRING_SERVICE, account)
    return password


def write_keyring(account: str, password: str) -> None:
    """Store the password of an account in the system's keyring.

    Raises:
        DeviceError: there is no keyring, or it is locked.
    """
    with _opened_keyring() as keyring:
        keyring.set_password(KEYRING_SERVICE, account, password)


@contextlib.contextmanager
def _opened_keyring() -> Iterator[Any]:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError as error:
        raise DeviceError(
            "the keyring package is not installed", next_step="Install it: pip install keyring"
        ) from error
    try:
        yield keyring
    except (KeyringError, RuntimeError, OSError) as error:
        # A backend may put anything into the message; its kind says enough.
        raise DeviceError(
            f"the system's keyring cannot be used ({type(error).__name__})",
            next_step="Unlock it, or set password = 'prompt' in the inventory to be asked for the password.",
        ) from error
