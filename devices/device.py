"""One physical or emulated thing that has a profile."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from halide_autotune.devices.remote_place import RemotePlace
from halide_autotune.targets.hexagon.runners import HexagonDeviceRunner, HexagonSimulator
from halide_autotune.targets.hexagon.sdk import HexagonSdk


class Clock(Enum):
    """What a time was measured with. Times of different clocks are never compared or trained on together.

    WALL and CYCLES are a real device's; CYCLES are those of its DSP, one nanosecond each. EMULATED is this machine's
    while it emulates a device. SIMULATED is computed from what the emulated program does: it is equal in every run, and
    orders schedules more like a device does.
    """

    WALL = "wall"
    CYCLES = "cycles"
    EMULATED = "emulated"
    SIMULATED = "simulated"

    @property
    def is_device_time(self) -> bool:
        """Whether a real device took it, not an emulator or simulator."""
        return self in (Clock.WALL, Clock.CYCLES)

    @property
    def is_noisy(self) -> bool:
        """Whether other work on the machine, its heat or its frequency change the times."""
        return self in (Clock.WALL, Clock.EMULATED)

    @property
    def shows_machine(self) -> bool:
        """Whether what else the machine does says something about the times: they are a real processor's."""
        return self is Clock.WALL

    @property
    def words(self) -> str:
        """The kind of time, for people."""
        if self is Clock.CYCLES:
            return "the DSP's processor cycles as nanoseconds"
        return "wall time" if self is Clock.WALL else f"{self.value} time, not a device's"

    @property
    def mark(self) -> str:
        """What follows each number where `words` are said once; empty for real time on a real device."""
        return {Clock.WALL: "", Clock.CYCLES: " dsp", Clock.EMULATED: " emul", Clock.SIMULATED: " sim"}[self]

    @classmethod
    def words_of(cls, recorded: str) -> str:
        """`words` for a recorded clock, which may be an unknown one."""
        known = cls._known(recorded)
        return f"{recorded} time, not a device's" if known is None else known.words

    @classmethod
    def mark_of(cls, recorded: str) -> str:
        """`mark` for a recorded clock, which may be an unknown one."""
        known = cls._known(recorded)
        return f" {recorded}" if known is None else known.mark

    @classmethod
    def _known(cls, recorded: str) -> Clock | None:
        return next((clock for clock in cls if clock.value == recorded), None)


@dataclass(frozen=True)
class Device:
    """A thing that runs executables.

    Attributes:
        name: as the user calls it.
        kind: 'local', 'qemu', 'hexagon-sim', 'ssh', 'adb' or a package's transport.
        profile_name: the profile it was chosen for.
        clock: what its times are measured with.
        threads: Halide threads a kernel runs with.
        uses_host_cores: it computes on this machine.
        remote: where it is; None for this machine.
        clock_plugin: QEMU's plug-in for the simulated clock; None for every other clock.
        simulator: Qualcomm's simulator, if that is the device.
        dsp: how programs reach its DSP, if that runs them instead of its processor.
        at_once: schedules that it times at once; more than one only with a clock that other work does not disturb.
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
        """Cores of this machine that builds must not use while it times; none for simulated time."""
        return self.threads if self.uses_host_cores and self.clock is not Clock.SIMULATED else 0

    @property
    def hexagon_sdk(self) -> HexagonSdk | None:
        """The SDK whose tools build its programs; None where the profile's own toolchain does."""
        way = self.simulator or self.dsp
        return None if way is None else way.sdk

    @property
    def clock_model(self) -> str | None:
        """Distinguishes its times from those of other devices with the same kind of clock; None if unnecessary."""
        way = self.simulator or self.dsp
        return None if way is None else way.clock_model

    @property
    def is_emulated(self) -> bool:
        """Whether its times are an emulator's."""
        return not self.clock.is_device_time

    @property
    def has_canary(self) -> bool:
        """Whether the canary shows if it has its usual speed; a processor's canary shows nothing about its DSP."""
        return not self.is_emulated and self.dsp is None
