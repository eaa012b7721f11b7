"""What a link gives, and how it fails."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from halide_autotune.devices.adb.link import AdbLink
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind


def output(link: AdbLink, *words: str) -> bytes:
    """What a program prints, with a terminal's line ends made plain."""
    return b"".join(link.stream(words)).replace(b"\r\n", b"\n")


@contextlib.contextmanager
def trouble(kind: TroubleKind, *parts: str) -> Iterator[None]:
    """Expects DeviceTrouble of this kind whose text has `parts`."""
    with pytest.raises(DeviceTrouble) as caught:
        yield
    text = str(caught.value)
    assert caught.value.kind is kind, text
    assert all(part in text for part in parts), text
