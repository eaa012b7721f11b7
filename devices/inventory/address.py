"""Addresses of devices as users write them."""

from __future__ import annotations

import ipaddress
import re

from halide_autotune.devices.remote_place import AdbAddress, Address, SshAddress, UrlAddress
from halide_autotune.targets.errors import UsageError

_SSH_FORM = "an SSH address; expected [user@]host[:port], such as pi@192.168.1.20:22, or a Host of ~/.ssh/config"
_ADB_FORM = "an address of an Android device; expected host[:port], such as 192.168.1.30:5555"
_URL_FORM = "the URL of a device; expected NAME://…, where NAME is a transport's"
_LONGEST_CHARACTERS = 255
_HIGHEST_PORT = 65535
_URL = re.compile(r"[a-z][a-z0-9_+.-]*://(?P<user>(?:[^\s/@]*@)?)\S+")
_DEFAULT_ADB_PORT = 5555
# A host that starts with a dash is an option to the commands that messages show; otherwise it may be an alias.
_ADDRESS = re.compile(
    r"((?P<user>[^\s:/-][^\s:/]*)@)?(\[(?P<ipv6>.*)\]|(?P<host>[^\s\[\]:/@-][^\s\[\]:/@]*))(:(?P<port>[0-9]{1,5}))?"
)


def parse_ssh_address(text: str) -> SshAddress:
    """Return the SSH server of `[user@]host[:port]`; an IPv6 address stands in brackets.

    Raises:
        UsageError: it is no such address.
    """
    if ":" in text.rpartition("@")[0].removeprefix("ssh://"):
        # It is not shown: what stands there is most likely a password.
        raise UsageError(
            "A password does not belong in an SSH address.",
            next_step='Write [user@]host[:port], and use a key, or password = "prompt" or "keyring".',
        )
    user, host, port = _parts(text, _SSH_FORM)
    return SshAddress(host=host, port=port, user=user)


def parse_adb_address(text: str) -> AdbAddress:
    """Return the Android device at `host[:port]`; an IPv6 address stands in brackets.

    Raises:
        UsageError: it is no such address.
    """
    user, host, port = _parts(text, _ADB_FORM)
    if user is not None:
        raise _unfit(text, _ADB_FORM)
    return AdbAddress(host=host, port=port or _DEFAULT_ADB_PORT)


def parse_url_address(text: str) -> UrlAddress:
    """Return the device at `NAME://…`, where NAME is that of a package's transport.

    Raises:
        UsageError: it is no such address.
    """
    found = _URL.fullmatch(text)
    if found is None or len(text) > _LONGEST_CHARACTERS or not text.isprintable():
        raise UsageError(f"{text[:80]!r} is not {_URL_FORM}.")
    if ":" in found["user"]:
        # It is not shown: what stands there is most likely a password.
        raise UsageError("A password does not belong in a device's URL.", next_step="Keep it where the transport asks.")
    return UrlAddress(text)


def address_text(address: Address) -> str | None:
    """Return what the functions above read back; None for an Android device over USB."""
    return None if isinstance(address, AdbAddress) and address.host is None else address.describe()


def _parts(text: str, form: str) -> tuple[str | None, str, int | None]:
    place = text.rpartition("@")[2]
    if _is_ipv6(place):
        raise UsageError(f"{text!r}: an IPv6 address stands in brackets; expected [{place}] or [{place}]:22.")
    found = _ADDRESS.fullmatch(text)
    if found is None or len(text) > _LONGEST_CHARACTERS or not text.isprintable():
        raise _unfit(text, form)
    host, port = found["host"] or found["ipv6"], None if found["port"] is None else int(found["port"])
    if (found["host"] is None and not _is_ipv6(host)) or (port is not None and not 1 <= port <= _HIGHEST_PORT):
        raise _unfit(text, form)
    return found["user"], host, port


def _is_ipv6(text: str) -> bool:
    try:
        return isinstance(ipaddress.ip_address(text), ipaddress.IPv6Address)
    except ValueError:
        return False


def _unfit(text: str, form: str) -> UsageError:
    return UsageError(f"{text[:80]!r} is not {form}; a port is from 1 to {_HIGHEST_PORT}.")
