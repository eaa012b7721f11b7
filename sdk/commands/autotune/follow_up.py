"""What comes after a run has been shown: the commands that `sdk autotune` suggests, and the exit code."""

from __future__ import annotations

from dataclasses import replace

import typer

from halide_autotune.autotune_loop.run.result import Outcome, TuneResult
from halide_autotune.autotune_loop.store.run_record import read_run_record
from halide_autotune.sdk.display.display import RESUME_IT, FollowUp
from halide_autotune.sdk.output import shown_path
from halide_autotune.sdk.project.next_commands import build_line, command_line, resume_line, ship_line
from halide_autotune.targets.errors import DeviceError, GeneratorError
from halide_autotune.targets.profile.profile import OWN_SCHEDULE

_INTERRUPTED = 130


def follow_up(result: TuneResult) -> FollowUp:
    """What to type next: a build with each winner, and the run again."""
    spec = read_run_record(result.run_folder).spec
    folder = shown_path(result.run_folder)
    devices = replace(spec.options.devices, target=spec.options.devices.target or result.target)
    lines = {}
    for index, (task, tuned) in enumerate(zip(spec.tasks, result.tuned, strict=False)):
        if tuned.is_published:
            label = "use it" if len(result.tuned) == 1 else f"use set {index + 1}"
            schedule = OWN_SCHEDULE if tuned.header is None else shown_path(tuned.header)
            of_result = replace(task, parameters=tuned.parameters)
            lines[label] = build_line(of_result, schedule, tuned.tuned_parameters, devices)
    if result.totals.samples_timed:
        lines["look at it"] = command_line("report", folder)
    if any(tuned.is_published for tuned in result.tuned):
        winners = [(tuned.confirmed, tuned.tuned_parameters) for tuned in result.tuned]
        lines |= ship_line(folder, winners)
    if result.outcome is not Outcome.EXHAUSTED:
        lines[RESUME_IT] = resume_line(folder, result.totals.rounds, spec.options.limits.rounds)
    return lines


def check_outcome(result: TuneResult) -> None:
    """End the command with an exit code where a run was interrupted or has not found what it was for.

    Raises:
        DeviceError: all devices were lost.
        GeneratorError: no schedule is published, and no default is kept.
    """
    if result.outcome is Outcome.INTERRUPTED:
        raise typer.Exit(_INTERRUPTED)
    if result.outcome is Outcome.DEVICES_LOST:
        raise DeviceError(
            "All devices were lost. Everything measured is saved.",
            next_step=f"Repair one, then run: sdk autotune --resume {result.run_folder}",
        )
    if not any(tuned.is_published or tuned.keeps_own for tuned in result.tuned):
        # Schedules may have been timed, but not the default, by which their gain is measured.
        why = next((t.published.no_default.sentence for t in result.tuned if t.published.no_default), "")
        timed = result.totals.samples_timed > 0
        raise GeneratorError(
            f"No schedule of {result.generator} is published: {why}"
            if timed and why
            else f"No schedule of {result.generator} was timed.",
            next_step="Read the warnings above. If there are none, continue with --resume and a longer --budget.",
        )
