"""The user's history: where it is, and what goes into it of a run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from halide_autotune.autotune_loop.candidate import found_by
from halide_autotune.autotune_loop.history.exchange import Nests
from halide_autotune.autotune_loop.history.history import History
from halide_autotune.autotune_loop.history.known_schedule import KnownSchedule, place_of
from halide_autotune.autotune_loop.report.recorded_run import RecordedRun, read_recorded_run
from halide_autotune.autotune_loop.report.schedule_table import header_text
from halide_autotune.autotune_loop.schedule.as_json import print_json
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.autotune_loop.search.known.known_schedules import KnownPipeline, known_pipelines
from halide_autotune.autotune_loop.specification.tuning_task import sample_file_name
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import GeneratorError, UsageError

_FILE = "history.sqlite3"
_FUNCTION = "schedule"


def open_history(settings: Settings) -> History:
    """The history of this user."""
    return History(settings.config_folder / _FILE)


def keep_run(folder: Path, history: History) -> int:
    """Add what a run has timed; returns how many schedules were not known yet.

    Raises:
        HistoryError: the history cannot be written.
        RunFolderError, UsageError: as `timed_schedules`.
    """
    return history.add(*timed_schedules(folder))


def timed_schedules(folder: Path) -> tuple[list[KnownSchedule], Nests]:
    """What a run has timed, as a history adds it, with the loop nests of what was lowered.

    Raises:
        RunFolderError: the folder holds no run, or is damaged.
        UsageError: none of the run's pipelines was described, as for a card, or with Halide's own search alone.
    """
    run, pipelines = read_recorded_run(folder), known_pipelines(folder)
    if not pipelines:
        raise UsageError(
            f"{folder} does not say what its pipelines compute, so nothing can be kept of it.",
            next_step="Add a run that is not for a card, tunes no parameters and uses other techniques than sampling.",
        )
    schedules, nests = [], {}
    for one, lowered in _schedules_of(run, pipelines):
        schedules.append(one)
        with contextlib.suppress(OSError):  # not every schedule was lowered
            nests[one.nest_key] = lowered.read_bytes()
    return schedules, nests


def _schedules_of(run: RecordedRun, pipelines: Mapping[int, KnownPipeline]) -> Iterator[tuple[KnownSchedule, Path]]:
    """What a run has timed and can be applied again, and where its loop nest is, if it was lowered."""
    made_with, spec = run.record.made_with, run.record.spec
    name = sample_file_name(spec.tasks)
    halide_target, device, clock = place_of(spec.profile.halide_target, made_with.devices, made_with.clock)
    for sample in run.samples:
        candidate = sample.candidate
        pipeline = pipelines.get(candidate.task_index)
        if pipeline is None or candidate.is_parameter_set:
            continue
        with contextlib.suppress(GeneratorError):  # a header that is gone, or that only Halide can read
            schedule = parse_schedule(header_text(run, sample))
            known = KnownSchedule(
                at_any_size=pipeline.identity.at_any_size,
                as_timed=pipeline.identity.as_timed,
                pipeline=spec.tasks[candidate.task_index].generator_name,
                conditions=pipeline.conditions,
                halide_target=halide_target,
                device=device,
                clock=clock,
                time_ms=sample.median_ms,
                found_by=found_by(candidate.point),
                halide_version=made_with.halide_version,
                at_unix_s=sample.at_unix_s,
                # Neither what a function is called nor what searched for it makes another schedule.
                schedule=print_json(replace(schedule, function_name=_FUNCTION, provenance=None)),
            )
            yield known, run.folder / "samples" / candidate.sample / f"{name}.lowered"
