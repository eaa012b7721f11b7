"""One physical or emulated thing that has a profile."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from devices.remote_place import RemotePlace
from targets.hexagon.runners import HexagonDeviceRunner, HexagonSimulator
from targets.hexagon.sdk import HexagonSdk


class Clock(Enum):
    """What a time was measured with. Times of different clocks are never compared or trained on together.

    WALL is a real device's. CYCLES are a real device's, too: those of its DSP, a nanosecond for each. EMULATED is this
    machine's while it emulates one. SIMULATED is modelled, from what the emulated program does: equal in every run, and
    in the order of a device's times far more often.
    """

    WALL = "wall"
    CYCLES = "cycles"
    EMULATED = "emulated"
    SIMULATED = "simulated"

    @property
    def is_device_time(self) -> bool:
        """Whether a real device took it, and no emulator or simulator."""
        return self in (Clock.WALL, Clock.CYCLES)

    @property
    def words(self) -> str:
        """What a time is, for people."""
        if self is Clock.CYCLES:
            return "the DSP's processor cycles as nanoseconds"
        return "wall time" if self is Clock.WALL else f"{self.value} time, not a device's"

    @property
    def label(self) -> str:
        """What is written behind a number, empty for real time on a real device."""
        if self is Clock.CYCLES:
            return " (DSP cycles as ns)"
        return "" if self is Clock.WALL else f" ({self.words})"

    @classmethod
    def words_of(cls, recorded: str) -> str:
        """`words` for what a record says; such a file may come from anywhere."""
        known = cls._known(recorded)
        return f"{recorded} time, not a device's" if known is None else known.words

    @classmethod
    def label_of(cls, recorded: str) -> str:
        """`label` for what a record says."""
        known = cls._known(recorded)
        return f" ({cls.words_of(recorded)})" if known is None else known.label

    @classmethod
    def _known(cls, recorded: str) -> Clock | None:
        return next((clock for clock in cls if clock.value == recorded), None)


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
        dsp: how programs get to its DSP, where that is what runs them, and not its processor.
        at_once: schedules that it times at once; more than one only by a clock that no other work disturbs.
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
    dsp: HexagonDeviceRunner | None = None
    at_once: int = 1

    @property
    def measuring_cores(self) -> int:
        """Cores of this machine that building must keep off while it times: none for simulated time, which stands."""
        return self.threads if self.uses_host_cores and self.clock is not Clock.SIMULATED else 0

    @property
    def hexagon_sdk(self) -> HexagonSdk | None:
        """The SDK whose tools build what it runs; None where the profile's own toolchain does."""
        way = self.simulator or self.dsp
        return None if way is None else way.sdk

    @property
    def clock_model(self) -> str | None:
        """What tells its times from those of other devices with a clock of that name; None where nothing has to."""
        way = self.simulator or self.dsp
        return None if way is None else way.clock_model

    @property
    def is_emulated(self) -> bool:
        """Whether its times are an emulator's."""
        return not self.clock.is_device_time

    @property
    def has_canary(self) -> bool:
        """Whether a fixed piece of work on its processor tells if it is at its usual speed: of a DSP's it does not."""
        return not self.is_emulated and self.dsp is None
