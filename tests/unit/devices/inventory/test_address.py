"""Addresses: what is read is what is meant, and what is written is read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.devices.inventory.address import (
    address_text,
    parse_adb_address,
    parse_ssh_address,
    parse_url_address,
)
from halide_autotune.devices.remote_place import AdbAddress, SshAddress, UrlAddress
from halide_autotune.targets.errors import UsageError


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("board", SshAddress("board")),
        ("pi@192.168.1.20:22", SshAddress("192.168.1.20", 22, "pi")),
        ("[::1]:2222", SshAddress("::1", 2222)),
        ("pi@[fe80::1%eth0]", SshAddress("fe80::1%eth0", None, "pi")),
        ("LAB\\ann@corp@gate", SshAddress("gate", None, "LAB\\ann@corp")),
    ],
)
def test_ssh_addresses(text: str, address: SshAddress) -> None:
    assert parse_ssh_address(text) == address
    assert address_text(address) == text


def test_adb_addresses() -> None:
    assert parse_adb_address("phone") == AdbAddress("phone", 5555)
    assert parse_adb_address("[::1]:5556") == AdbAddress("::1", 5556)
    assert address_text(AdbAddress("::1", 5556)) == "[::1]:5556"
    assert address_text(AdbAddress(serial="X")) is None


@pytest.mark.parametrize(
    "text",
    [
        *["", "@board", "pi@", "-oProxyCommand=x", "pi@-x", "-l@x", "a b", "board:", "board:0", "board:65536"],
        *["board:٣", "board:22:23", "[::1", "[board]:22", "[::1]22", "a/b", "x" * 300, "a\nb", "[::1]:"],
    ],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(UsageError, match="is not an SSH address"):
        parse_ssh_address(text)
    with pytest.raises(UsageError, match="is not an address of an Android device"):
        parse_adb_address(text.removeprefix("pi"))


@pytest.mark.parametrize("text", ["pi:hunter2@board", "ssh://pi:hunter2@board:22", "pi:hunter2@gw@board"])
def test_a_password_in_an_address_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(UsageError, match="password does not belong") as caught:
        parse_ssh_address(text)
    assert "hunter2" not in str(caught.value)


def test_ipv6_without_brackets_is_explained() -> None:
    with pytest.raises(UsageError, match=r"stands in brackets; expected \[fe80::1\]"):
        parse_ssh_address("fe80::1")


@given(st.text(max_size=40))
def test_whatever_is_accepted_is_written_back(text: str) -> None:
    try:
        address = parse_ssh_address(text)
    except UsageError:
        return
    written = address_text(address)
    assert written is not None
    assert parse_ssh_address(written) == address
    assert not address.host.startswith("-")


@pytest.mark.parametrize("text", ["lab://rack3/board-7", "lab://ann@rack:22/7", "x+y.z-1://?q=1", "lab://:7"])
def test_urls(text: str) -> None:
    address = parse_url_address(text)
    assert address == UrlAddress(text) and address_text(address) == text
    assert address.transport == text.partition(":")[0]


@pytest.mark.parametrize(
    "text", ["", "lab", "lab:/x", "lab://", "://x", "Lab://x", "lab://a b", "lab://\x1b", "-x://y", "l://" + "x" * 300]
)
def test_what_is_no_url(text: str) -> None:
    with pytest.raises(UsageError, match="is not the URL of a device"):
        parse_url_address(text)


def test_a_password_in_a_url_is_refused_and_not_shown() -> None:
    with pytest.raises(UsageError, match="password does not belong") as caught:
        parse_url_address("lab://pi:hunter2@board")
    assert "hunter2" not in str(caught.value)
