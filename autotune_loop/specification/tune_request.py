"""What `autotune` is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from autotune_loop.farm.use import FarmUse
from autotune_loop.specification.objective import LOOKS, Objective
from autotune_loop.specification.tuning_task import TuningTask, generator_names
from devices.device import Clock, Device
from devices.device_trouble import DeviceTrouble
from devices.remote_place import ConnectionSettings
from devices.timing.measure_settings import KernelInputs
from targets.hexagon.sdk import HexagonSdk
from targets.profile.profile import TargetProfile

LOSSES = ("relative_throughput", "rank")


@dataclass(frozen=True)
class SamplingOptions:
    """How schedules are sampled.

    Attributes:
        batch_size: schedules built and timed a round and argument set.
        pool_factor: schedules searched for each that is built.
        random_share: share of a batch that is drawn from the pool at random (AutoTVM's ε).
        diversity: weight of being different against being fast.
        seed: of everything random.
    """

    batch_size: int = 32
    pool_factor: float = 2.0
    random_share: float = 0.15
    diversity: float = 0.5
    seed: int = 0


@dataclass(frozen=True)
class LearningOptions:
    """How the cost model is retrained.

    Attributes:
        loss: Halide's relative throughput, or AutoTVM's rank loss.
        epochs: passes over all samples a round.
        held_out_share: share of the samples that only score.
    """

    loss: str = "relative_throughput"
    epochs: int = 300
    learning_rate: float = 1e-3
    held_out_share: float = 0.2


@dataclass(frozen=True)
class TuneRequest:
    """One run of the loop.

    Attributes:
        tasks: what is tuned, at least one.
        devices: at least one; all have one clock.
        parallelism: threads of a device.
        weights: weights to start from; None takes the profile's, or those inside the plug-in.
        is_transferred: nobody asked for `weights`; they come from other runs and must prove themselves.
        budget_s: wall-clock seconds for everything; None sets no limit.
        build_jobs: candidates built at once; None takes one a core.
        connections: what of this machine SSH and ADB connections are made with; None where there are none.
        patience_s: how long the run waits when no device is left.
        farm: the farm that the devices are of; None where this machine reaches them itself.
        search_limit_s, full_search_limit_s, memory_limit_bytes: of one candidate.
        objective: what the winner is to be good at, where there are several devices.
        play_off_turns: the most turns of challenger against default or incumbent, at least the first of the looks.
    """

    tasks: tuple[TuningTask, ...]
    profile: TargetProfile
    devices: tuple[Device, ...]
    parallelism: int
    run_folder: Path
    rounds: int = 100
    budget_s: float | None = None
    weights: Path | None = None
    is_transferred: bool = False
    sampling: SamplingOptions = field(default_factory=SamplingOptions)
    learning: LearningOptions = field(default_factory=LearningOptions)
    inputs: KernelInputs = field(default_factory=KernelInputs)
    resume: bool = False
    build_jobs: int | None = None
    search_limit_s: float = 60.0
    full_search_limit_s: float | None = None
    memory_limit_bytes: int | None = None
    max_time_s: float = 0.3
    precision: float = 0.01
    connections: ConnectionSettings | None = None
    patience_s: float = 600.0
    farm: FarmUse | None = None
    objective: Objective = field(default_factory=Objective)
    play_off_turns: int = LOOKS[-1]

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
        return generator_names(self.tasks)

    @property
    def device_names(self) -> str:
        """The devices, for people."""
        return ", ".join(device.name for device in self.devices)


def _ignore_health(device: str, trouble: DeviceTrouble | None) -> None:
    """For those who keep no record."""


@dataclass(frozen=True)
class Folders:
    """Where the SDK keeps what outlives a run, and what children see as their environment.

    Attributes:
        ndk_root: the Android NDK's folder; None where there is none.
        report_health: told a device's name and why it is unhealthy, or None when it is well again.
    """

    cache: Path
    locks: Path
    environment: Mapping[str, str]
    report_health: Callable[[str, DeviceTrouble | None], None] = _ignore_health
    ndk_root: Path | None = None
