"""What a worker needs to build and measure for a run."""

from __future__ import annotations

from dataclasses import dataclass

from halide_autotune.autotune_loop.specification.build_limits import BuildLimits
from halide_autotune.autotune_loop.specification.run_spec import RunSpec
from halide_autotune.autotune_loop.specification.tuning_task import TuningTask, sample_file_name
from halide_autotune.autotune_loop.specification.workspace import Workspace
from halide_autotune.devices.device import Device
from halide_autotune.devices.timing.measure_settings import KernelInputs
from halide_autotune.targets.hexagon.sdk import HexagonSdk
from halide_autotune.targets.profile.profile import TargetProfile
from halide_autotune.weights.network import Network


@dataclass(frozen=True)
class RunContext:
    """The unchanging part of a run on one machine.

    Attributes:
        spec: the run; its tasks' generators are files on this machine.
        devices: the devices that this machine reaches.
        inputs: the kernels' inputs, with files as the runner reads them.
        limits: of one candidate.
        workspace: this machine; its work folder is the run's.
        only_records: see `PreparedRun`.
    """

    spec: RunSpec
    devices: tuple[Device, ...]
    inputs: KernelInputs
    limits: BuildLimits
    workspace: Workspace
    only_records: bool = False

    @property
    def tasks(self) -> tuple[TuningTask, ...]:
        """The tasks of the run, at least one."""
        return self.spec.tasks

    @property
    def profile(self) -> TargetProfile:
        """The target profile."""
        return self.spec.profile

    @property
    def parallelism(self) -> int:
        """Threads of the device, as the autoscheduler is told."""
        return self.spec.parallelism

    @property
    def sample_file_name(self) -> str:
        """The name of sample files, without suffix."""
        return sample_file_name(self.tasks)

    @property
    def hexagon_sdk(self) -> HexagonSdk | None:
        """The SDK that builds for the devices; None if the profile's own toolchain does."""
        return self.devices[0].hexagon_sdk if self.devices else None

    @property
    def network(self) -> Network:
        """The cost model of the profile's autoscheduler."""
        return Network(self.profile.autoscheduler.name)
