"""A run that can start: its specification, and its devices and files on this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.autotune_loop.farm.use import FarmUse
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.specification.run_spec import RunSpec
from halide_autotune.autotune_loop.specification.tuning_task import generator_names
from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.device_trouble import DeviceTrouble
from halide_autotune.devices.timing.measure_settings import KernelInputs
from halide_autotune.targets.hexagon.sdk import HexagonSdk

# Called with a device's name and why it is unhealthy, or None when it is healthy again.
ReportHealth = Callable[[str, DeviceTrouble | None], None]


@dataclass(frozen=True)
class PreparedRun:
    """A run and its devices.

    Attributes:
        devices: at least one; all have one clock.
        inputs: those of the specification, with files as the runner reads them.
        weights: the weights to start from; None for the profile's, or those inside the plug-in.
        is_transferred: the weights are from other runs and were not asked for, so they are checked against Halide's.
        nest_prior: the file of what the loop nests of other programs say on such devices; None takes the SDK's own.
        resume: whether to continue the run in `folder`.
        history: the file of earlier runs' schedules; None takes none of them.
        farm: the devices' farm; None if this machine reaches them itself.
        only_records: it times schedules to be learnt from later: none is the default, none wins, no model is trained.
    """

    spec: RunSpec
    folder: Path
    devices: tuple[Device, ...]
    inputs: KernelInputs
    report_health: ReportHealth
    weights: Path | None = None
    is_transferred: bool = False
    nest_prior: Path | None = None
    resume: bool = False
    history: Path | None = None
    farm: FarmUse | None = None
    only_records: bool = False

    @property
    def options(self) -> RunOptions:
        """The options of the run."""
        return self.spec.options

    @property
    def clock(self) -> Clock:
        """The clock of all the devices."""
        return self.devices[0].clock

    @property
    def hexagon_sdk(self) -> HexagonSdk | None:
        """The SDK that builds for the devices; None if the profile's own toolchain does."""
        return self.devices[0].hexagon_sdk

    @property
    def runs_here(self) -> bool:
        """Whether any device is this machine or an emulator on it."""
        return any(device.uses_host_cores for device in self.devices)

    @property
    def generator_names(self) -> str:
        """The names of the generators, as shown to users."""
        return generator_names(self.spec.tasks)

    @property
    def device_names(self) -> str:
        """The names of the devices, as shown to users."""
        return ", ".join(device.name for device in self.devices)
