"""What a run is asked: written to `run.toml`, read back when it is resumed, and sent to a farm's workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from autotune_loop.specification.options import RunOptions
from autotune_loop.specification.tuning_task import TuningTask
from targets.profile.profile import TargetProfile
from targets.values.checks import whole_number


@dataclass(frozen=True)
class RunSpec:
    """A run, whichever machine it runs on: plain values and paths alone.

    Attributes:
        tasks: what is tuned, at least one.
        profile: what it is tuned for, with the machine parameters of the devices.
        parallelism: threads of a device, or multiprocessors of its card, that schedules are made for.
        options: everything else that was asked.
    """

    tasks: tuple[TuningTask, ...]
    profile: TargetProfile
    parallelism: Annotated[int, whole_number(1)]
    options: RunOptions
