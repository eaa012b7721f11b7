"""A schedule that some run has timed, as a history keeps it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from halide_autotune.autotune_loop.history.pipeline_identity import PipelineIdentity, sha256_text
from halide_autotune.targets.values.checks import above_zero, one_line


@dataclass(frozen=True)
class KnownSchedule:
    """A schedule and its time.

    Times are compared only within a pipeline at one size, a Halide target, a device and a clock.

    Attributes:
        at_any_size, at_its_size: the pipeline's identity.
        pipeline: the name of its generator.
        size: of its outputs, for people.
        halide_target: that it was compiled for.
        device: the user's name of the device; `exchange` replaces it in what is exported.
        clock: what the time was measured with.
        time_ms: on the scale of its run.
        found_by: the technique.
        halide_version: that applied it.
        at_unix_s: when it was timed.
        schedule: as JSON, see `autotune_loop.schedule.as_json`.
    """

    at_any_size: Annotated[str, sha256_text]
    at_its_size: Annotated[str, sha256_text]
    pipeline: Annotated[str, one_line]
    size: Annotated[str, one_line]
    halide_target: Annotated[str, one_line]
    device: Annotated[str, one_line]
    clock: Annotated[str, one_line]
    time_ms: Annotated[float, above_zero()]
    found_by: Annotated[str, one_line]
    halide_version: Annotated[str, one_line]
    at_unix_s: float
    schedule: str

    @cached_property
    def sha256(self) -> str:
        """Of the schedule."""
        return hashlib.sha256(self.schedule.encode()).hexdigest()

    @property
    def identity(self) -> PipelineIdentity:
        """Its pipeline's."""
        return PipelineIdentity(self.at_any_size, self.at_its_size)

    @property
    def place(self) -> tuple[str, str, str]:
        """Where its time is from; times of different places are not compared."""
        return self.halide_target, self.device, self.clock
