"""The commands that `sdk autotune` suggests after a run."""

from __future__ import annotations

import shlex

from halide_autotune.autotune_loop.run.result import Outcome, TunedSchedule, TuneResult
from halide_autotune.autotune_loop.specification.options import DeviceOptions
from halide_autotune.autotune_loop.specification.tuning_task import TuningTask
from halide_autotune.autotune_loop.store.run_record import read_run_record
from halide_autotune.sdk.display.display import RESUME_IT, FollowUp
from halide_autotune.sdk.output import shown_path
from halide_autotune.targets.toolchain.cpp_build import CppBuild
from halide_autotune.targets.values.options import differing_options, value_at


def follow_up(result: TuneResult) -> FollowUp:
    """What to type next: a build with each winner, and the run again."""
    spec = read_run_record(result.run_folder).spec
    folder = shown_path(result.run_folder)
    lines = {}
    for index, (task, tuned) in enumerate(zip(spec.tasks, result.tuned, strict=False)):
        if tuned.is_published:
            label = "use it" if len(result.tuned) == 1 else f"use set {index + 1}"
            lines[label] = _build(task, tuned, spec.options.devices, result.target)
    if result.totals.samples_timed:
        lines["look at it"] = _line("report", folder)
    if any(tuned.is_published for tuned in result.tuned):
        confirmed = all(tuned.confirmed for tuned in result.tuned)
        lines["ship it"] = _line("ship", folder, "-o", "schedules", *([] if confirmed else ["--play-off"]))
    if result.outcome is not Outcome.EXHAUSTED:
        # A run that has begun its last round continues only with more rounds.
        rounds = spec.options.limits.rounds
        more = ["--num-batches", str(2 * rounds)] if result.totals.rounds >= rounds else []
        lines[RESUME_IT] = _line("autotune", "--resume", folder, *more)
    return lines


def _line(*words: str) -> str:
    return shlex.join(["sdk", *words])


def _build(task: TuningTask, tuned: TunedSchedule, devices: DeviceOptions, target: str) -> str:
    build = task.reference.build
    if build.cmake is None:
        generator, made_from = shown_path(task.reference.file), _made_from(build)
    else:
        generator = str(build.cmake_target)
        own = CppBuild(kernel_sources=build.kernel_sources, data_files=build.data_files)  # CMake says the rest
        made_from = ["--cmake", shown_path(build.cmake), *_made_from(own)]
    words = [f"{generator}:{task.generator_name}", "--target", devices.target or target]
    for key, value in {**tuned.parameters, **tuned.tuned_parameters}.items():
        words += ["-p", f"{key}={value}"]
    words += made_from
    if task.function_name != task.generator_name:
        words += ["--function-name", task.function_name]
    if devices.target_features:
        words += ["--target-features", ",".join(devices.target_features)]
    if devices.hexagon_sdk_root is not None:
        words += ["--hexagon-sdk-root", str(devices.hexagon_sdk_root)]
    schedule = "own" if tuned.header is None else shown_path(tuned.header)
    return _line("build", *words, "--schedule", schedule)


def _made_from(build: CppBuild) -> list[str]:
    options = differing_options(CppBuild(), build)
    return [f"{option.label}={value}" for option in options for value in value_at(build, option)]
