"""A run that can start: what is asked, with what that is on this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from autotune_loop.farm.use import FarmUse
from autotune_loop.specification.options import RunOptions
from autotune_loop.specification.run_spec import RunSpec
from autotune_loop.specification.tuning_task import generator_names
from devices.device import Clock, Device
from devices.device_trouble import DeviceTrouble
from devices.timing.measure_settings import KernelInputs
from targets.hexagon.sdk import HexagonSdk

ReportHealth = Callable[[str, DeviceTrouble | None], None]


def _ignore_health(device: str, trouble: DeviceTrouble | None) -> None:
    """For those who keep no record."""


@dataclass(frozen=True)
class PreparedRun:
    """A run and its devices.

    Attributes:
        devices: at least one; all have one clock.
        inputs: those of the specification, with files as the runner reads them.
        weights: weights to start from; None takes the profile's, or those inside the plug-in.
        is_transferred: nobody asked for `weights`; they come from other runs and must prove themselves.
        resume: go on with the run in `folder`.
        farm: the farm that the devices are of; None where this machine reaches them itself.
        report_health: told a device's name and why it is unhealthy, or None when it is well again.
    """

    spec: RunSpec
    folder: Path
    devices: tuple[Device, ...]
    inputs: KernelInputs
    weights: Path | None = None
    is_transferred: bool = False
    resume: bool = False
    farm: FarmUse | None = None
    report_health: ReportHealth = _ignore_health

    @property
    def options(self) -> RunOptions:
        """What the run is asked."""
        return self.spec.options

    @property
    def clock(self) -> Clock:
        """What the devices' times are measured with."""
        return self.devices[0].clock

    @property
    def hexagon_sdk(self) -> HexagonSdk | None:
        """The SDK whose tools build what the devices run; None where the profile's own toolchain does."""
        return self.devices[0].hexagon_sdk

    @property
    def runs_here(self) -> bool:
        """Whether kernels run on this machine, natively or emulated, if only some of them."""
        return any(device.uses_host_cores for device in self.devices)

    @property
    def generator_names(self) -> str:
        """The generators, for people."""
        return generator_names(self.spec.tasks)

    @property
    def device_names(self) -> str:
        """The devices, for people."""
        return ", ".join(device.name for device in self.devices)
