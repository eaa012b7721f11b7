"""Schedules as a history has them, for tests."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from halide_autotune.autotune_loop.history.known_schedule import KnownSchedule
from halide_autotune.autotune_loop.history.pipeline_identity import PipelineIdentity

PIPELINE = PipelineIdentity(*(hashlib.sha256(text).hexdigest() for text in (b"harris", b"harris at 640x480")))
TARGET = "arm-64-linux"
PLACE = (TARGET, "pi5", "wall")

_FIRST = KnownSchedule(
    at_any_size=PIPELINE.at_any_size,
    as_timed=PIPELINE.as_timed,
    pipeline="harris",
    conditions="640x480, 4 threads",
    halide_target=TARGET,
    device="pi5",
    clock="wall",
    time_ms=1.0,
    found_by="evolution",
    halide_version="21.0.0",
    at_unix_s=1_000.0,
    schedule="{}",
)
# A schedule of any pipeline.
INLINED = """{"function_name": "schedule", "provenance": null, "funcs": [], "parameters": [], "variables": [],
"stages": []}"""


def known(time_ms: float, schedule: str = "", **changed: object) -> KnownSchedule:
    """A schedule with a time; its text says the time where none is given."""
    # Fields by name.
    return replace(_FIRST, time_ms=time_ms, schedule=schedule or f'{{"time": {time_ms}}}', **changed)  # type: ignore[arg-type]
