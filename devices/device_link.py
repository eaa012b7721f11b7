"""The protocol of the link to one device: files, and programs started there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from halide_autotune.targets.extension_point import ExtensionPoint

# An entry point leads to a class or function that makes a `DeviceLink` of the device's name and of its URL.
TRANSPORTS = ExtensionPoint(
    group="halide_autotune.transports",
    noun="transport",
    protocol="sdk.DeviceLink",
    methods=("connect", "put", "get", "stream", "close"),
    built_in=("ssh", "adb"),
    remedy="take its devices out of devices.toml",
)
_SAFE_WORD = re.compile(r"[A-Za-z0-9_@%+=:,./-]+", re.ASCII)


class DeviceLink(Protocol):
    """Files to and from one device, and programs started there. Used by one thread at a time.

    Paths on the device are relative to the folder that sessions start in (the home folder over SSH), or absolute.
    Every method raises DeviceTrouble; after LOST, TIMEOUT or PROTOCOL_ERROR the link is closed, and `connect` opens it
    again. The SDK's agent does the rest on the device, such as time limits and leases.

    A package gives its own by an entry point of the group `halide_autotune.transports`.
    """

    def connect(self) -> None:
        """Connect and authenticate unless connected. Tries once; the caller decides whether to try again."""
        ...

    def put(self, source: Path, path: str) -> None:
        """Copy a local file to `path`, executable by its owner, and make its folder if missing.

        After a failure `path` is undefined, so callers copy beside it, check, and rename.
        """
        ...

    def get(self, path: str, destination: Path) -> None:
        """Copy the device's file `path` to the local path `destination`, which may be partial after a failure."""
        ...

    def stream(self, words: Sequence[str]) -> Iterator[bytes]:
        """Start a program and yield its output (both streams) as it comes, until it ends.

        Yields b'' at least every 0.25 s while nothing comes, so that the caller can check its clocks. Closing the
        iterator early closes the program's connection. Where there is no such program, the output is the complaint of
        the device's shell.

        Args:
            words: program and arguments, each one accepted by `join_words`.
        """
        ...

    def close(self) -> None:
        """Close the connection, if there is one."""
        ...


def join_words(words: Sequence[str]) -> str:
    """Return the command line of `words` for a remote shell.

    SSH and ADB carry one string to a shell. Nothing is ever quoted: words consist of letters, digits and harmless
    marks, and whatever a user may name travels base64-encoded inside one of them.

    Raises:
        ValueError: a word has another character; a bug of the SDK.
    """
    for word in words:
        if not _SAFE_WORD.fullmatch(word):
            raise ValueError(f"{word!r} must not reach a shell")
    # A shell takes NAME=… in front of everything for an assignment, and a folder may be called that.
    is_assignment = "=" in words[0].partition("/")[0]
    return ("./" if is_assignment else "") + " ".join(words)
