"""Command lines to type next: what uses a winner, decides about it again, ships it, or goes on with its run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from halide_autotune.autotune_loop.report.comparison import Comparison
from halide_autotune.autotune_loop.report.recorded_run import RecordedRun
from halide_autotune.autotune_loop.specification.objective import Objective
from halide_autotune.autotune_loop.specification.options import DeviceOptions, RunOptions
from halide_autotune.autotune_loop.specification.tuning_task import TuningTask, published_paths
from halide_autotune.devices.timing.measure_settings import KernelInputs
from halide_autotune.sdk.display.display import RESUME_IT
from halide_autotune.sdk.output import shown_path
from halide_autotune.targets.profile.profile import OWN_SCHEDULE
from halide_autotune.targets.toolchain.cpp_build import CppBuild
from halide_autotune.targets.values.options import differing_options, value_at
from halide_autotune.targets.values.records import plain


def next_commands(run: RecordedRun) -> dict[str, str]:
    """What to type next about a recorded run, by what it is for; the names are those of the end of a run."""
    spec, folder, options = run.record.spec, shown_path(run.folder), _options(run)
    lines: dict[str, str] = {}
    for index, path in enumerate(published_paths(run.folder / "samples", spec.tasks)):
        header = run.headers.get(index)
        if header is None:
            continue
        task, which = spec.tasks[index], "it" if len(spec.tasks) == 1 else f"set {index + 1}"
        tuned = header.published.parameters
        schedule = shown_path(path) if _is_header(path) else OWN_SCHEDULE
        lines[f"use {which}"] = build_line(task, schedule, tuned, options.devices)
        against = _to_beat(task, spec.profile.autoscheduler.name)
        if _is_header(path) and (line := _play_off_line(task, [against, schedule], tuned, options)):
            lines[f"time {which} in turns"] = line
    if run.headers:
        winners = [(header.published.confirmed, header.published.parameters) for header in run.headers.values()]
        lines |= ship_line(folder, winners)
        if any(not header.published.parameters for header in run.headers.values()):
            lines["say why it is fast"] = command_line("explain", folder)
    if run.samples:
        lines["replay it"] = command_line("autotune", "--replay", folder)
        done = 1 + max(sample.candidate.round_index for sample in run.samples)
        lines[RESUME_IT] = resume_line(folder, done, spec.options.limits.rounds)
    return lines


def play_off_line(comparison: Comparison) -> str:
    """`sdk bench --play-off` of the winners of runs side by side, the first against the others.

    Empty where no command times them in turns: the runs' devices, objectives, pipelines, inputs or sizes differ, they
    have several sizes, or a winner is no header.
    """
    found: list[tuple[str, TuningTask, RunOptions]] = []
    for one in comparison.runs:
        path = published_paths(one.run.folder / "samples", one.run.record.spec.tasks)[one.task.task_index]
        if not one.header or not _is_header(path) or one.published.parameters:
            return ""
        found.append((shown_path(path), one.run.record.spec.tasks[one.task.task_index], _options(one.run)))
    headers = dict.fromkeys(header for header, _, _ in found)
    lines = {_play_off_line(task, [*headers], {}, options) for _, task, options in found}
    return lines.pop() if len(headers) > 1 and len(lines) == 1 and not comparison.why_not_compared else ""


def build_line(task: TuningTask, schedule: str, tuned: Mapping[str, str], devices: DeviceOptions) -> str:
    """`sdk build` with a winner.

    Args:
        schedule: its header; `own` where parameters were tuned.
        tuned: values of the tuned parameters.
        devices: with the target.
    """
    words = [*_generator_words(task, tuned, devices)]
    if task.function_name != task.generator_name:
        words += ["--function-name", task.function_name]
    if devices.target_features:
        words += ["--target-features", ",".join(devices.target_features)]
    if devices.hexagon_sdk_root is not None:
        words += ["--hexagon-sdk-root", str(devices.hexagon_sdk_root)]
    return command_line("build", *words, "--schedule", schedule)


def ship_line(folder: str, winners: Sequence[tuple[bool, Mapping[str, str]]]) -> dict[str, str]:
    """`sdk ship`, with a play-off where a winner needs one; nothing where only the run can confirm one: parameters.

    Args:
        winners: whether each is confirmed, and its tuned parameters.
    """
    if any(parameters and not confirmed for confirmed, parameters in winners):
        return {}
    needs_one = not all(confirmed for confirmed, _ in winners)
    return {"ship it": command_line("ship", folder, "-o", "schedules", *(["--play-off"] if needs_one else []))}


def resume_line(folder: str, rounds_done: int, rounds: int) -> str:
    """The run again; one that has begun its last round continues only with more rounds."""
    more = ["--num-batches", str(2 * rounds)] if rounds_done >= rounds else []
    return command_line("autotune", "--resume", folder, *more)


def command_line(*words: str) -> str:
    """A command for a shell."""
    return shlex.join(["sdk", *words])


def option_words(default: object, given: object) -> list[str]:
    """The options by which a record of options differs from another of its kind, as they are typed."""
    return [label if value is None else f"{label}={value}" for label, value in _differing(default, given)]


def _differing(default: object, given: object) -> Iterator[tuple[str, str | None]]:
    """The flag and the value of each of these options; None for a flag without a value."""
    for option in differing_options(default, given):
        value = value_at(given, option)
        several = value if isinstance(value, tuple) else (value,)
        if isinstance(value, Mapping):
            several = tuple(f"{key}={one}" for key, one in value.items())
        if option.keyword == "target_features":
            several = (",".join(several),)
        for one in several:
            yield option.label, None if one is True else str(plain(one))


def _options(run: RecordedRun) -> RunOptions:
    """What a run was asked, with its target."""
    spec = run.record.spec
    devices = replace(spec.options.devices, target=spec.options.devices.target or spec.profile.name)
    return replace(spec.options, devices=devices)


def _is_header(published: Path) -> bool:
    return published.suffix == ".h"


def _play_off_line(task: TuningTask, schedules: Sequence[str], tuned: Mapping[str, str], options: RunOptions) -> str:
    """Empty for several sizes, of which `sdk bench` takes one."""
    if options.inputs.also_sizes:
        return ""
    words = [*_generator_words(task, tuned, options.devices)]
    for name, size in task.estimates.items():
        if not name.startswith("#"):  # an output, which follows from the inputs
            words += ["--estimate", f"{name}={size}"]
    asked = [
        *_differing(DeviceOptions(target=options.devices.target), options.devices),
        *_differing(KernelInputs(), _beside_estimates(options.inputs, task.estimates)),
        *_differing(Objective(), options.play_off.objective),
    ]
    for label, value in asked:
        words += [label] if value is None else [label, value]
    for schedule in schedules:
        words += ["--schedule", schedule]
    return command_line("bench", *words, "--play-off")


def _beside_estimates(inputs: KernelInputs, estimates: Mapping[str, str]) -> KernelInputs:
    """What kernels are called with, without what estimates say; a size with a place can only come from one."""
    sizes = {name: size for name, size in inputs.sizes.items() if size != estimates.get(name) and "@" not in size}
    scalars = {name: value for name, value in inputs.scalars.items() if value != estimates.get(name)}
    return replace(inputs, sizes=sizes, scalars=scalars)


def _to_beat(task: TuningTask, autoscheduler: str) -> str:
    if task.incumbent is not None:
        return shown_path(task.incumbent)
    return OWN_SCHEDULE if task.schedules_itself else autoscheduler.lower()


def _generator_words(task: TuningTask, tuned: Mapping[str, str], devices: DeviceOptions) -> Iterator[str]:
    """The generator with its parameters, its target and what it is made from."""
    build = task.reference.build
    if build.cmake is None:
        generator, made_from = shown_path(task.reference.file), option_words(CppBuild(), build)
    else:
        generator = str(build.cmake_target)
        own = CppBuild(kernel_sources=build.kernel_sources, data_files=build.data_files)  # CMake says the rest
        made_from = ["--cmake", shown_path(build.cmake), *option_words(CppBuild(), own)]
    yield from (f"{generator}:{task.generator_name}", "--target", str(devices.target))
    for key, value in {**task.parameters, **tuned}.items():
        yield from ("-p", f"{key}={value}")
    yield from made_from
