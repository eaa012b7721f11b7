"""`sdk ship`: from runs to a folder to commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from autotune_loop.shipping.files.guard_header import guard_file, print_guard_header
from autotune_loop.shipping.generator_sources import GeneratorSources
from autotune_loop.shipping.proven_schedule import ProvenSchedule, prove_schedule
from autotune_loop.shipping.run_schedule import RunSchedule, read_run_schedules
from autotune_loop.shipping.ship_folder import open_ship_folder, write_ship_folder
from autotune_loop.shipping.ship_manifest import ShipManifest, ShippedSchedule
from autotune_loop.shipping.sizes.trial import TriedSizes, check_acceptance
from targets.errors import UsageError
from targets.generator.program import GeneratorProgram

Confirmation = Callable[[RunSchedule, GeneratorProgram], RunSchedule]
SizeTrial = Callable[[ProvenSchedule], TriedSizes]
Progress = Callable[[str], None]


def ship_runs(
    runs: Sequence[Path],
    output: Path,
    sources: GeneratorSources,
    sdk_version: str,
    progress: Progress,
    *,
    confirm: Confirmation | None = None,
    trial: SizeTrial | None = None,
    guard: bool = False,
) -> ShipManifest:
    """Write the schedules of the runs into the folder `output`, beside those for other targets.

    Args:
        confirm: holds a play-off and returns the schedule with its times; None uses the run's own times.
        trial: runs a schedule at other sizes; None skips that.
        guard: also write a C header that calls another kernel at sizes that the schedule does not take.

    Raises:
        RunFolderError: a run folder is damaged or has no winner; `output` has foreign or changed files.
        GeneratorError: a generator is not the one that was tuned, a header cannot be applied, a play-off is lost, or
            a size fails.
        UsageError: two runs are for one generator and target.
        ToolchainError: no C++ compiler is installed.
    """
    open_ship_folder(output)
    found = [schedule for folder in runs for schedule in read_run_schedules(folder)]
    _check_different(found)
    shipped: list[ShippedSchedule] = []
    texts: dict[str, str] = {}
    for run in found:
        progress(f"checking {run.name} for {run.profile_name} against its generator")
        with sources.open(run) as program:
            confirmed = run if confirm is None else confirm(run, program)
            proven = prove_schedule(confirmed, program, sources.compiler, sdk_version)
            schedule = proven.shipped
            if trial is not None:
                tried = trial(proven)
                check_acceptance(schedule.header, tried, guard)
                schedule = replace(schedule, sizes=tried.outcomes)
                if guard:
                    schedule = replace(schedule, guard=guard_file(schedule.name))
                    texts[guard_file(schedule.name)] = print_guard_header(schedule.name, tried.signature)
        shipped.append(schedule)
        texts[schedule.header] = proven.header_text
        texts[schedule.python_module] = proven.module_text
    return write_ship_folder(output, shipped, texts)


def _check_different(found: Sequence[RunSchedule]) -> None:
    first: dict[tuple[str, str], RunSchedule] = {}
    for run in found:
        other = first.setdefault((run.name, run.profile_name), run)
        if other is not run:
            raise UsageError(
                f"{other.folder} and {run.folder} are both runs of {run.name} for {run.profile_name}.",
                next_step="Ship one of them.",
            )
