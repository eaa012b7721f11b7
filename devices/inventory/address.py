"""Addresses of devices as users write them."""

from __future__ import annotations

import ipaddress
import re

from devices.remote_place import AdbAddress, SshAddress
from targets.errors import UsageError

_SSH_FORM = "[user@]host[:port], such as pi@192.168.1.20:22, or a Host of ~/.ssh/config"
_ADB_FORM = "host[:port], such as 192.168.1.30:5555"
_LONGEST_CHARACTERS = 255
_HIGHEST_PORT = 65535
_DEFAULT_ADB_PORT = 5555
# A host that starts with a dash would be an option to whatever is shown to be typed; the rest may be an alias.
_HOST = re.compile(r"[^\s\[\]:/@-][^\s\[\]:/@]*")
_USER = re.compile(r"[^\s:/-][^\s:/]*")
_PORT = re.compile(r"[0-9]{1,5}", re.ASCII)


def parse_ssh_address(text: str) -> SshAddress:
    """Return the SSH server of `[user@]host[:port]`; an IPv6 address stands in brackets.

    Raises:
        UsageError: it is no such address.
    """
    user, at, place = text.rpartition("@")
    if at and ":" in user.removeprefix("ssh://"):
        # It is not shown: what stands there is most likely a password.
        raise UsageError(
            f"An SSH address holds no password; expected {_SSH_FORM}.",
            next_step='Use a key, or password = "prompt" or "keyring".',
        )
    if at and not _USER.fullmatch(user):
        raise _unfit(text, "an SSH address", _SSH_FORM)
    host, port = _host_and_port(text, place, "an SSH address", _SSH_FORM)
    return SshAddress(host=host, port=port, user=user if at else None)


def parse_adb_address(text: str) -> AdbAddress:
    """Return the Android device at `host[:port]`; an IPv6 address stands in brackets.

    Raises:
        UsageError: it is no such address.
    """
    host, port = _host_and_port(text, text, "an address of an Android device", _ADB_FORM)
    return AdbAddress(host=host, port=_DEFAULT_ADB_PORT if port is None else port)


def address_text(address: SshAddress | AdbAddress) -> str | None:
    """Return what the two functions above read back; None for an Android device over USB."""
    if address.host is None:
        return None
    host = f"[{address.host}]" if ":" in address.host else address.host
    user = f"{address.user}@" if isinstance(address, SshAddress) and address.user is not None else ""
    return f"{user}{host}" + ("" if address.port is None else f":{address.port}")


def _host_and_port(text: str, place: str, what: str, form: str) -> tuple[str, int | None]:
    if len(text) > _LONGEST_CHARACTERS or not text.isprintable():
        raise _unfit(text, what, form)
    if place.startswith("["):
        host, bracket, rest = place[1:].partition("]")
        if not bracket or not _is_ipv6(host) or (rest and not rest.startswith(":")):
            raise _unfit(text, what, form)
        return host, _port(text, rest[1:], what, form) if rest else None
    if _is_ipv6(place):
        raise UsageError(f"{text!r}: an IPv6 address stands in brackets; expected [{place}] or [{place}]:22.")
    host, colon, rest = place.partition(":")
    if not _HOST.fullmatch(host):
        raise _unfit(text, what, form)
    return host, _port(text, rest, what, form) if colon else None


def _port(text: str, digits: str, what: str, form: str) -> int:
    if not _PORT.fullmatch(digits) or not 1 <= int(digits) <= _HIGHEST_PORT:
        raise _unfit(text, what, f"{form}; a port is from 1 to {_HIGHEST_PORT}")
    return int(digits)


def _is_ipv6(text: str) -> bool:
    try:
        return isinstance(ipaddress.ip_address(text), ipaddress.IPv6Address)
    except ValueError:
        return False


def _unfit(text: str, what: str, form: str) -> UsageError:
    return UsageError(f"{text[:80]!r} is not {what}; expected {form}.")
