"""One physical or emulated thing that has a profile."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from devices.remote_place import RemotePlace


class Clock(Enum):
    """What a time was measured with. Times of different clocks are never compared or trained on together."""

    WALL = "wall"
    EMULATED = "emulated"

    @property
    def label(self) -> str:
        """What is written behind a number, empty for real time on a real device."""
        return "" if self is Clock.WALL else f" ({self.value} time, not a device's)"


@dataclass(frozen=True)
class Device:
    """A thing that runs executables.

    Attributes:
        name: as the user calls it.
        kind: 'local', 'qemu', 'ssh' or 'adb'.
        profile_name: the profile it was chosen for.
        clock: what its times are measured with.
        threads: Halide threads a kernel runs with.
        uses_host_cores: true when it computes on this machine, so that building must keep off its cores.
        remote: where it is; None for this machine.
    """

    name: str
    kind: str
    profile_name: str
    clock: Clock
    threads: int
    uses_host_cores: bool
    remote: RemotePlace | None = None

    @property
    def is_emulated(self) -> bool:
        """Whether its times are an emulator's."""
        return self.clock is Clock.EMULATED
