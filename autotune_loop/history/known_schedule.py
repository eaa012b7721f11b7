"""A schedule that some run has timed, as a history keeps it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from halide_autotune.autotune_loop.history.pipeline_identity import PipelineIdentity, sha256_text
from halide_autotune.targets.values.checks import above_zero, number, one_line

_LATEST_UNIX_S = 2**33
_LONGEST_DEVICES_CHARACTERS = 500
_LONGEST_CONDITIONS_CHARACTERS = 500
# What a loop nest is of: a pipeline as it was timed, a Halide target, and the hash of a schedule.
NestKey = tuple[str, str, str]


@dataclass(frozen=True)
class KnownSchedule:
    """A schedule and its time.

    Times are compared only within a pipeline as it was timed, a Halide target, a device and a clock.

    Attributes:
        at_any_size, as_timed: the pipeline's identity.
        pipeline: the name of its generator.
        conditions: its outputs' sizes and the threads, for people.
        halide_target: that it was compiled for.
        device: the user's name of the device, or of several; `exchange` replaces it in what is exported.
        clock: what the time was measured with.
        time_ms: on the scale of its run.
        found_by: the technique.
        halide_version: that applied it.
        at_unix_s: when it was timed.
        schedule: as JSON, see `autotune_loop.schedule.as_json`.
    """

    at_any_size: Annotated[str, sha256_text]
    as_timed: Annotated[str, sha256_text]
    pipeline: Annotated[str, one_line]
    conditions: Annotated[str, one_line]
    halide_target: Annotated[str, one_line]
    device: Annotated[str, one_line]
    clock: Annotated[str, one_line]
    time_ms: Annotated[float, above_zero()]
    found_by: Annotated[str, one_line]
    halide_version: Annotated[str, one_line]
    at_unix_s: Annotated[float, number(0, _LATEST_UNIX_S)]
    schedule: str

    @cached_property
    def sha256(self) -> str:
        """Of the schedule."""
        return hashlib.sha256(self.schedule.encode()).hexdigest()

    @property
    def nest_key(self) -> NestKey:
        """What it is lowered to: for another target it has vectors of other lengths."""
        return self.as_timed, self.halide_target, self.sha256

    @property
    def identity(self) -> PipelineIdentity:
        """Its pipeline's."""
        return PipelineIdentity(self.at_any_size, self.as_timed)

    @property
    def place(self) -> tuple[str, str, str]:
        """Where its time is from; times of different places are not compared."""
        return self.halide_target, self.device, self.clock


def place_of(halide_target: str, devices: Iterable[str], clock: str) -> tuple[str, str, str]:
    """The place of a run's times: of several devices, in whatever order they were named."""
    names = sorted(devices)
    text = ", ".join(names)
    if len(text) > _LONGEST_DEVICES_CHARACTERS:
        text = f"{len(names)} devices ({hashlib.sha256(text.encode()).hexdigest()[:12]})"
    return halide_target, text, clock


def conditions_text(size: str, further_sizes: int, threads: int) -> str:
    """'1280x720x3 and 1 more, 2 threads', for people."""
    more = f" and {further_sizes} more" if further_sizes else ""
    return f"{size[:_LONGEST_CONDITIONS_CHARACTERS]}{more}, {threads_text(threads)}"


def threads_text(threads: int) -> str:
    """'2 threads', as `conditions_text` ends."""
    return "1 thread" if threads == 1 else f"{threads} threads"
