"""The link of a package's transport."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from halide_autotune.devices.device_link import TRANSPORTS, DeviceLink, join_words
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.remote_place import UrlAddress
from halide_autotune.targets.errors import SdkError
from halide_autotune.targets.extension_point import told


def open_plug_in_link(name: str, address: UrlAddress) -> DeviceLink:
    """Return the link to a device, not yet connected.

    Raises:
        DeviceTrouble: REFUSED, the package is not installed or cannot be used.
    """
    transport = address.transport
    try:
        link = TRANSPORTS.make(transport, name, address.url)
    except DeviceTrouble:
        raise
    except SdkError as error:
        raise DeviceTrouble(TroubleKind.REFUSED, error.message, next_step=error.next_step) from error
    return PlugInLink(link, name, TRANSPORTS.title(transport))


class PlugInLink:
    """A package's link. Whatever else it raises becomes trouble of the device, which names the package.

    Args:
        device: the device's name.
        title: what messages call the transport.
    """

    def __init__(self, link: DeviceLink, device: str, title: str) -> None:
        self._link = link
        self._device = device
        self._title = title

    def connect(self) -> None:
        """See `DeviceLink.connect`."""
        with self._guarded(TroubleKind.UNREACHABLE, "connect"):
            self._link.connect()

    def put(self, source: Path, path: str) -> None:
        """See `DeviceLink.put`."""
        with self._guarded(TroubleKind.LOST, "put"):
            self._link.put(source, path)

    def get(self, path: str, destination: Path) -> None:
        """See `DeviceLink.get`."""
        with self._guarded(TroubleKind.LOST, "get"):
            self._link.get(path, destination)

    def stream(self, words: Sequence[str]) -> Generator[bytes, None, None]:
        """See `DeviceLink.stream`."""
        join_words(words)
        with self._guarded(TroubleKind.LOST, "stream"):
            blocks: Any = self._link.stream(words)
            try:
                for block in blocks:
                    if not isinstance(block, bytes):
                        raise TypeError(f"it must yield bytes, and yields {type(block).__name__}")
                    yield block
            finally:
                # Closed at once when this iterator is, and not when it is collected.
                if hasattr(blocks, "close"):
                    blocks.close()

    def close(self) -> None:
        """See `DeviceLink.close`."""
        with contextlib.suppress(Exception):  # the connection is given up in any case
            self._link.close()

    @contextlib.contextmanager
    def _guarded(self, kind: TroubleKind, method: str) -> Iterator[None]:
        try:
            yield
        except DeviceTrouble as trouble:
            if trouble.kind.ends_connection:
                self.close()
            raise
        except (Exception, SystemExit) as error:  # it is somebody else's code
            self.close()
            message = f"{self._device} cannot be used: {self._title} failed in `{method}`: {told(error)}"
            raise DeviceTrouble(kind, message, next_step="Look at the device, or mend the transport.") from error
