"""Passwords and passphrases of SSH devices: asked for, or from the system's keyring."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from devices.remote_place import ConnectionSettings, PasswordSource, SshAddress
from devices.ssh.route import SshHop, plan_route
from targets.errors import DeviceError

KEYRING_SERVICE = "halide-autotune-sdk"


class SshSecrets:
    """Where the secrets of one device come from. What was asked for is remembered until it proves wrong.

    Args:
        name: the device's, for what is asked and said.
        source: where the inventory says that the password comes from.
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
        if self._source is PasswordSource.NONE or (self._source is PasswordSource.PROMPT and self._ask is None):
            return None
        if what not in self._remembered:
            if self._source is PasswordSource.PROMPT and self._ask is not None:
                self._remembered[what] = self._ask(question)
            else:
                self._remembered[what] = self._from_keyring(hop.place)
        return self._remembered[what]

    def _from_keyring(self, account: str) -> str:
        secret = read_keyring(account)
        if secret is None:
            raise DeviceError(
                f"the keyring has no password for {account}",
                next_step=f"Store it: sdk devices password {self._name}",
            )
        return secret


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
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError as error:
        raise _no_package() from error
    try:
        return keyring.get_password(KEYRING_SERVICE, account)
    except (KeyringError, RuntimeError, OSError) as error:
        raise _no_keyring(error) from error


def write_keyring(account: str, password: str) -> None:
    """Store the password of an account in the system's keyring.

    Raises:
        DeviceError: there is no keyring, or it is locked.
    """
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError as error:
        raise _no_package() from error
    try:
        keyring.set_password(KEYRING_SERVICE, account, password)
    except (KeyringError, RuntimeError, OSError) as error:
        raise _no_keyring(error) from error


def _no_package() -> DeviceError:
    return DeviceError("the keyring package is not installed", next_step="Install it: pip install keyring")


def _no_keyring(error: Exception) -> DeviceError:
    # The message could hold anything a backend puts there; its kind says enough.
    return DeviceError(
        f"the system's keyring cannot be used ({type(error).__name__})",
        next_step="Unlock it, or let the password be asked for: password = 'prompt' in the inventory.",
    )
