"""The command lines that go on from a run of `sdk autotune`."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from autotune_loop.run.result import Outcome, TunedSchedule, TuneResult
from autotune_loop.specification.options import DeviceOptions
from autotune_loop.specification.tuning_task import TuningTask
from autotune_loop.store.run_record import read_run_record
from sdk.display.display import FollowUp


def follow_up(result: TuneResult) -> FollowUp:
    """What to type next: a build with each winner, and the run again."""
    spec = read_run_record(result.run_folder).spec
    # A run that has begun its last round goes on only when it is given more of them.
    rounds = spec.options.limits.rounds
    more = ["--num-batches", str(2 * rounds)] if result.totals.rounds >= rounds else []
    return FollowUp(
        build=tuple(
            _build(task, tuned, spec.options.devices, result.target)
            for task, tuned in zip(spec.tasks, result.tuned, strict=False)
        ),
        resume=None
        if result.outcome is Outcome.EXHAUSTED
        else _line("autotune", "--resume", _from_here(result.run_folder), *more),
        look=_line("report", _from_here(result.run_folder)) if result.totals.samples_timed else None,
        ship=_line("ship", _from_here(result.run_folder), "-o", "schedules")
        if any(tuned.header for tuned in result.tuned)
        else None,
    )


def _line(*words: str) -> str:
    return shlex.join(["sdk", *words])


def _build(task: TuningTask, tuned: TunedSchedule, devices: DeviceOptions, target: str) -> str | None:
    if tuned.header is None:
        return None
    words = [f"{_from_here(task.reference.file)}:{task.generator_name}", "--target", devices.target or target]
    for key, value in tuned.parameters.items():
        words += ["-p", f"{key}={value}"]
    if task.function_name != task.generator_name:
        words += ["--function-name", task.function_name]
    if devices.hexagon_sdk_root is not None:
        words += ["--hexagon-sdk-root", str(devices.hexagon_sdk_root)]
    return _line("build", *words, "--schedule", _from_here(tuned.header))


def _from_here(path: Path) -> str:
    here = Path.cwd()
    return os.path.relpath(path, here) if path.is_relative_to(here) else str(path)
