"""What connections to devices need of this machine and its user."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import sys
from pathlib import Path

from halide_autotune.devices.remote_place import ConnectionSettings
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import DeviceError, UsageError

_IDENTITY_NAMES = ("id_ed25519", "id_ecdsa", "id_rsa")


def connection_settings(settings: Settings, secrets: tuple[tuple[str, str], ...] = ()) -> ConnectionSettings:
    """Return the user's SSH files, the SDK's ADB key, and the name of the owner of leases.

    Args:
        secrets: passwords that were asked for, by device name.

    Raises:
        UsageError: this user has no home folder.
    """
    ssh_folder = home_folder(settings) / ".ssh"
    ssh_program = shutil.which("ssh", path=settings.environment.get("PATH", os.defpath))
    return ConnectionSettings(
        ssh_config_file=ssh_folder / "config",
        known_hosts_file=ssh_folder / "known_hosts",
        identity_files=tuple(ssh_folder / name for name in _IDENTITY_NAMES),
        adb_key_file=settings.config_folder / "adb" / "adbkey",
        lease_owner=f"{_user_name()}@{socket.gethostname()}",
        token_folder=settings.config_folder / "leases",
        secrets=secrets,
        ssh_program=None if ssh_program is None else Path(ssh_program),
        environment=settings.environment,
    )


def health_folder(settings: Settings) -> Path:
    """Return the folder with the records of unhealthy devices."""
    return settings.config_folder / "health"


def home_folder(settings: Settings) -> Path:
    """Return the home folder of the user whose settings these are.

    Raises:
        UsageError: there is none.
    """
    if home := settings.environment.get("HOME"):
        return Path(home)
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError as error:
        raise UsageError("This user has no home folder.", next_step="Set HOME to a folder.") from error


def _user_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def ask_on_terminal(question: str) -> str:
    """Ask for a secret on the terminal, without showing it.

    Raises:
        DeviceError: there is no terminal, or no answer; the text is part of a message.
    """
    import getpass

    if not sys.stdin.isatty():
        raise DeviceError(
            "there is no terminal to ask on",
            next_step='Run the command in a terminal, or save the password in the keyring (password = "keyring").',
        )
    try:
        answer = getpass.getpass(question)
    except EOFError as error:
        raise DeviceError("none was given") from error
    if not answer:
        raise DeviceError("none was given")
    return answer


def refuse_to_ask(question: str) -> str:
    """Refuse to ask for a password, while several devices are asked at once.

    Raises:
        DeviceError: always; the text is part of a message.
    """
    del question
    raise DeviceError("this command does not ask for it", next_step="Run `sdk devices check`, which asks for it.")
