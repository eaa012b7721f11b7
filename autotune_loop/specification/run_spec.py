"""The specification of a run: written to `run.toml`, read when it is resumed, and sent to a farm's workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.specification.tuning_task import TuningTask
from halide_autotune.targets.profile.profile import TargetProfile
from halide_autotune.targets.values.checks import whole_number


@dataclass(frozen=True)
class RunSpec:
    """A run on any machine: plain values and paths.

    Attributes:
        tasks: at least one.
        profile: the target profile, with the machine parameters of the devices.
        parallelism: threads of a device (on a GPU, multiprocessors) that schedules are made for.
        options: everything else.
    """

    tasks: tuple[TuningTask, ...]
    profile: TargetProfile
    parallelism: Annotated[int, whole_number(1)]
    options: RunOptions
