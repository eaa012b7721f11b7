"""The commands that `sdk autotune` suggests after a run."""

from __future__ import annotations

from dataclasses import replace

from halide_autotune.autotune_loop.run.result import Outcome, TuneResult
from halide_autotune.autotune_loop.store.run_record import read_run_record
from halide_autotune.sdk.display.display import RESUME_IT, FollowUp
from halide_autotune.sdk.output import shown_path
from halide_autotune.sdk.project.next_commands import build_line, command_line, resume_line, ship_line
from halide_autotune.targets.profile.profile import OWN_SCHEDULE


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
