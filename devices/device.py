"""One physical or emulated thing that has a profile."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from devices.remote_place import RemotePlace
from targets.hexagon_sdk import HexagonSdk
from targets.hexagon_simulator import HexagonSimulator


class Clock(Enum):
    """What a time was measured with. Times of different clocks are never compared or trained on together.

    WALL is a real device's. EMULATED is this machine's while it emulates one. SIMULATED is modelled, from what the
    emulated program does: equal in every run, and in the order of a device's times far more often.
    """

    WALL = "wall"
    EMULATED = "emulated"
    SIMULATED = "simulated"

    @property
    def label(self) -> str:
        """What is written behind a number, empty for real time on a real device."""
        return "" if self is Clock.WALL else f" ({self.value} time, not a device's)"


@dataclass(frozen=True)
class Device:
    """A thing that runs executables.

    Attributes:
        name: as the user calls it.
        kind: 'local', 'qemu', 'hexagon-sim', 'ssh' or 'adb'.
        profile_name: the profile it was chosen for.
        clock: what its times are measured with.
        threads: Halide threads a kernel runs with.
        uses_host_cores: true when it computes on this machine.
        remote: where it is; None for this machine.
        clock_plugin: what gives QEMU the simulated clock; None for every other clock.
        simulator: Qualcomm's, where that is the device; None for every other one.
    """

    name: str
    kind: str
    profile_name: str
    clock: Clock
    threads: int
    uses_host_cores: bool
    remote: RemotePlace | None = None
    clock_plugin: Path | None = None
    simulator: HexagonSimulator | None = None

    @property
    def measuring_cores(self) -> int:
        """Cores of this machine that building must keep off while it times: none for simulated time, which stands."""
        return self.threads if self.uses_host_cores and self.clock is not Clock.SIMULATED else 0

    @property
    def hexagon_sdk(self) -> HexagonSdk | None:
        """The SDK whose tools build what it runs; None where the profile's own toolchain does."""
        return None if self.simulator is None else self.simulator.sdk

    @property
    def is_emulated(self) -> bool:
        """Whether its times are an emulator's."""
        return self.clock is not Clock.WALL
