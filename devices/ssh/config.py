"""What the user's SSH configuration says about a host."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.remote_place import ConnectionSettings, SshAddress
from halide_autotune.targets.process.limited_process import ProcessLimits, run_limited

# A Match may run a program of the user's, and canonical names are looked up in the network.
_LIMITS = ProcessLimits(time_s=60.0, memory_bytes=2 * 2**30)
# ssh lists its default keys where none is named, and nothing tells them from named ones.
_NO_DEFAULT_KEYS = "/dev/null/no-default-keys"
_NO_JUMP = "ProxyJump=none"
_SSH_FAILED = 255
_JUMPS_TO_ITSELF = "jumphost loop"
_TOKEN = re.compile(r"%.|\$\{(\w+)\}")
_ONLY_FOR_SSH = re.compile(r"^\s*(include|match)\b", re.IGNORECASE | re.MULTILINE)
_TRAILING_COMMENT = re.compile(r'(?<=\S)[ \t]+#[^"\n]*$', re.MULTILINE)


def configured_options(address: SshAddress, connections: ConnectionSettings) -> dict[str, Any]:
    """What holds for a host, by keyword in lower case; a list for identityfile, else one text.

    OpenSSH's client answers where it is installed; elsewhere paramiko reads what is in plain Host blocks. hostname,
    user, port and identityfile are always there: what `address` says counts first; user may be empty.

    Raises:
        DeviceTrouble: the configuration cannot be used for this host.
    """
    try:
        account = pwd.getpwuid(os.getuid())
    except KeyError:
        account = None
    # ssh does not run for a user whom the system does not know.
    if connections.ssh_program is None or account is None:
        options = _read_host_blocks(address.host, connections.ssh_config_file)
    else:
        options = _ask_ssh(str(connections.ssh_program), address, connections, Path(account.pw_dir))
    local_user = account.pw_name if account is not None else ""
    options["user"] = address.user or options.get("user") or local_user
    options["port"] = str(address.port or options.get("port", 22))
    _fill_tokens(options, address.host, local_user, connections.environment)
    return options


def _ask_ssh(program: str, address: SshAddress, connections: ConnectionSettings, home: Path) -> dict[str, Any]:
    command = [program, "-G", "-T", "-o", f"IdentityFile={_NO_DEFAULT_KEYS}"]
    file = connections.ssh_config_file
    # With -F, ssh passes over the configuration of the whole system.
    if file != home / ".ssh" / "config":
        command += ["-F", str(file) if os.path.exists(file) else "none"]
    if address.user is not None:
        command += ["-l", address.user]
    if address.port is not None:
        command += ["-p", str(address.port)]
    lines = _answer(command, address.host, connections.environment)
    # Before the answer, which begins with the user, is whatever the program of a Match wrote.
    start = max((number for number, line in enumerate(lines) if line.startswith("user ")), default=0)
    options: dict[str, Any] = dict(line.split(" ", 1) for line in lines[start:] if " " in line)
    keys = [line.partition(" ")[2] for line in lines if line.startswith("identityfile ")]
    if "hostname" not in options or _NO_DEFAULT_KEYS not in keys:
        raise _unusable(address.host, f"{program} -G does not answer as OpenSSH's does")
    options["identityfile"] = keys[keys.index(_NO_DEFAULT_KEYS) + 1 :]
    if options.get("userknownhostsfile") in [f"{at}/.ssh/known_hosts {at}/.ssh/known_hosts2" for at in ("~", home)]:
        del options["userknownhostsfile"]
    return options


def _answer(command: list[str], host: str, environment: Mapping[str, str]) -> list[str]:
    try:
        outcome = run_limited([*command, "--", host], _LIMITS, environment=environment)
    except OSError as error:
        raise _unusable(host, f"{command[0]} cannot be started: {error.strerror}") from error
    lines = [line.rstrip("\r") for line in outcome.log.split("\n")]
    if outcome.succeeded:
        return lines
    # Such as a jump host of every host: it is reached directly itself.
    if _JUMPS_TO_ITSELF in outcome.log and _NO_JUMP not in command:
        return _answer([*command, "-o", _NO_JUMP], host, environment)
    causes = [line for line in lines if line and ": terminating, " not in line and outcome.exit_code == _SSH_FAILED]
    raise _unusable(host, "; ".join(causes)[:500] or f"{command[0]} -G {outcome.describe()}")


def _read_host_blocks(host: str, file: Path) -> dict[str, Any]:
    from paramiko import SSHConfig, SSHException

    try:
        text = file.read_text(errors="replace") if os.path.exists(file) else ""
        if found := _ONLY_FOR_SSH.search(text):
            raise _unusable(
                host,
                f"{file} has {found[1].capitalize()}, which only OpenSSH's client follows",
                "Install OpenSSH's client (ssh), or put the settings into plain Host blocks.",
            )
        config = SSHConfig.from_text(_TRAILING_COMMENT.sub("", text))
        # It knows other tokens than ssh.
        config.TOKENS_BY_CONFIG_KEY = {}
        options = dict(config.lookup(host))
    except (OSError, SSHException, LookupError, ValueError) as error:
        raise _unusable(host, f"{file}: {error}") from error
    options["hostname"] = options["hostname"].replace("%h", host).lower()
    return options


def _fill_tokens(options: dict[str, Any], host: str, local_user: str, environment: Mapping[str, str]) -> None:
    """Replace what ssh -G leaves as it is."""
    values = {
        "%%": "%",
        "%d": os.path.expanduser("~"),
        "%h": options["hostname"],
        "%n": host,
        "%p": options["port"],
        "%r": options["user"],
        "%u": local_user,
    }

    def fill(text: str) -> str:
        return _TOKEN.sub(lambda found: values.get(found[0]) or environment.get(found[1] or "", found[0]), text)

    options["identityfile"] = [fill(name.strip('"')) for name in options.get("identityfile", [])]
    for keyword in ("userknownhostsfile", "proxyjump"):
        if keyword in options:
            options[keyword] = fill(options[keyword])


def _unusable(host: str, cause: str, next_step: str = "Correct the SSH configuration.") -> DeviceTrouble:
    return refused(f"The SSH configuration cannot be used for {host}: {cause}.", next_step)


def refused(message: str, next_step: str) -> DeviceTrouble:
    """What is raised where a connection is not even tried, or not trusted."""
    return DeviceTrouble(TroubleKind.REFUSED, message, next_step=next_step)
