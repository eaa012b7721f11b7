"""The protocol between the SDK and the place where an executable runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from halide_autotune.targets.errors import DeviceError
from halide_autotune.targets.process.stop_signal import StopSignal

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,199}")


@dataclass(frozen=True)
class RunOutcome:
    """How a program on a device ended.

    Attributes:
        exit_code: its exit status; minus the signal number when a signal ended it.
        timed_out: it was killed, with its children, at its time limit.
        stopped: it was killed because the run is stopping.
        output: stdout and stderr together (the end, if very long); untrusted.
        duration_s: wall-clock seconds; of the program alone where the device tells, else as seen from here.
        canary_s: times of the canary right before and after the program; empty where there is none.
        boot: identifies the time since the device was last switched on; empty if unknown.
    """

    exit_code: int
    timed_out: bool
    stopped: bool
    output: str
    duration_s: float
    canary_s: tuple[float, ...] = ()
    boot: str = ""

    @property
    def succeeded(self) -> bool:
        """Whether the program ended by itself with exit code 0."""
        return self.exit_code == 0 and not self.timed_out and not self.stopped


class Transport(Protocol):
    """A folder on a device, and running programs in it.

    A transport belongs to one device and is used by one thread at a time. Names are plain file names inside the
    device's folder, checked by `check_name`. Every method raises DeviceError when the device cannot be used;
    how a program ends is in its RunOutcome.
    """

    def push(self, source: Path, name: str) -> None:
        """Copy a local file to the device with its executable bit; unchanged content is not sent again."""
        ...

    def pull(self, name: str, destination: Path) -> None:
        """Copy a file of the device's folder to a local path, whole or not at all."""
        ...

    def run(self, name: str, arguments: Sequence[str], time_s: float, stop: StopSignal | None = None) -> RunOutcome:
        """Run a pushed program with the device's folder as its working directory."""
        ...

    def remove(self, name: str) -> None:
        """Delete a file of the folder if it exists."""
        ...

    def close(self) -> None:
        """Delete the folder and release the device."""
        ...


def close_all(closers: Sequence[Callable[[], object]]) -> None:
    """Call what closes transports, all at once: one whose device is dead takes its time."""
    if closers:
        with ThreadPoolExecutor(len(closers), thread_name_prefix="closing") as pool:
            for closing in [pool.submit(one) for one in closers]:
                closing.result()


def check_name(name: str) -> str:
    """Return `name` if it is a plain file name that needs no quoting anywhere.

    Raises:
        DeviceError: it has a separator, a leading dot or dash, a space or another unsafe character.
    """
    if not _NAME.fullmatch(name):
        raise DeviceError(
            f"{name!r} is not a valid file name on a device.",
            next_step="Use letters, digits, underscores, dots, plus and minus signs.",
        )
    return name
