"""The protocol between the SDK and the place where an executable runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from targets.process.stop_signal import StopSignal


@dataclass(frozen=True)
class RunOutcome:
    """How a program on a device ended.

    Attributes:
        exit_code: its exit status; minus the signal number when a signal ended it.
        timed_out: it was killed, with its children, at its time limit.
        stopped: it was killed because the run is stopping.
        output: stdout and stderr together (its end, when very long); untrusted.
        duration_s: wall-clock seconds, of the program's own run where the device tells, else on this side.
        canary_s: times of a fixed piece of work right before and right after the program; empty where there is none.
        boot: identifies the time since the device was last switched on; empty where it does not tell.
    """

    exit_code: int
    timed_out: bool
    stopped: bool
    output: str
    duration_s: float
    canary_s: tuple[float, ...] = ()
    boot: str = ""


class Transport(Protocol):
    """A folder on a device, and running programs in it.

    A transport belongs to one device and is used by one thread at a time. Names are plain file names inside the
    device's folder, checked by `check_name`. Every method raises DeviceError when the device cannot be used;
    what a program does is in its RunOutcome.
    """

    def push(self, source: Path, name: str) -> None:
        """Copy a local file to the device, keeping its executable bit; unchanged content is not sent again."""
        ...

    def pull(self, name: str, destination: Path) -> None:
        """Copy a file of the device's folder to a local path; nothing half-written is left."""
        ...

    def run(self, name: str, arguments: Sequence[str], time_s: float, stop: StopSignal | None = None) -> RunOutcome:
        """Run a pushed program with the device's folder as its working directory."""
        ...

    def remove(self, name: str) -> None:
        """Delete a file of the folder; quiet when it is not there."""
        ...

    def close(self) -> None:
        """Delete the folder and let go of the device."""
        ...
