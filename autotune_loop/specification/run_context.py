"""What a worker needs to know to build and measure for one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from autotune_loop.specification.tuning_task import TuningTask, sample_file_name
from devices.device import Device
from devices.local.cores import CorePlan
from devices.remote_place import ConnectionSettings
from devices.timing.measure_settings import KernelInputs
from targets.hexagon.sdk import HexagonSdk
from targets.profile.profile import TargetProfile
from weights.network import Network


@dataclass(frozen=True)
class BuildLimits:
    """What one candidate may use.

    Attributes:
        search_s: of a random search with code generation.
        full_search_s: of the full beam search.
        reference_s: of building the reference.
        reference_run_s: of running it once.
        memory_bytes: of each process.
    """

    search_s: float = 60.0
    full_search_s: float = 600.0
    reference_s: float = 120.0
    reference_run_s: float = 600.0
    memory_bytes: int = 8 * 2**30


@dataclass(frozen=True)
class RunContext:
    """The unchanging part of a run; sent once to every worker.

    Attributes:
        tasks: what is tuned, at least one.
        parallelism: threads of the device, as the autoscheduler is told.
        connections: what of this machine SSH and ADB connections are made with; None where there are none.
        cache_folder: content-addressed files kept across runs.
        work_folder: scratch space of the run.
        lock_folder: where building and measuring take turns.
        environment: of every child process.
        ndk_root: the Android NDK to link with; None where there is none, or where its programs would not run.
    """

    tasks: tuple[TuningTask, ...]
    profile: TargetProfile
    parallelism: int
    devices: tuple[Device, ...]
    inputs: KernelInputs
    connections: ConnectionSettings | None
    cores: CorePlan
    limits: BuildLimits
    cache_folder: Path
    work_folder: Path
    lock_folder: Path
    environment: Mapping[str, str]
    ndk_root: Path | None = None

    @property
    def sample_file_name(self) -> str:
        """What the files of samples are called, without their suffixes."""
        return sample_file_name(self.tasks)

    def device(self, name: str) -> Device:
        """The device of that name."""
        return next(device for device in self.devices if device.name == name)

    @property
    def hexagon_sdk(self) -> HexagonSdk | None:
        """The SDK whose tools build what the devices run; None where the profile's own toolchain does."""
        return self.devices[0].hexagon_sdk if self.devices else None

    @property
    def network(self) -> Network:
        """The cost model of the profile's autoscheduler."""
        return Network(self.profile.autoscheduler.name)

    @property
    def kernel_target(self) -> str:
        """Halide target of the kernels: the runtime is linked once, beside them."""
        return self.profile.halide_target + "-no_runtime"
