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
from targets.errors import RunFolderError, UsageError
from targets.generator.program import GeneratorProgram

Confirmation = Callable[[RunSchedule, GeneratorProgram], RunSchedule]
SizeTrial = Callable[[ProvenSchedule], TriedSizes]
Progress = Callable[[str], None]


def require_confirmed(run: RunSchedule, program: GeneratorProgram) -> RunSchedule:
    """The schedule with the times of the run's own play-off.

    Raises:
        RunFolderError: that has not confirmed it.
    """
    published = run.facts.published
    if published.confirmed:
        return run
    why = published.message.removeprefix("Unconfirmed: ").rstrip(".")
    raise RunFolderError(
        f"The winner {run.header} is unconfirmed: {why}.",
        next_step=f"Hold a play-off now with --play-off, continue the run (sdk autotune --resume {run.folder}),"
        " or ship it as it is with --allow-unconfirmed.",
    )


def allow_unconfirmed(run: RunSchedule, program: GeneratorProgram) -> RunSchedule:
    """The schedule as the run has it; one that no play-off has confirmed is shipped with that said in its files."""
    return run


def ship_runs(
    runs: Sequence[Path],
    output: Path,
    sources: GeneratorSources,
    sdk_version: str,
    progress: Progress,
    *,
    confirm: Confirmation = require_confirmed,
    trial: SizeTrial | None = None,
    guard: bool = False,
) -> ShipManifest:
    """Write the schedules of the runs into the folder `output`, beside those for other targets.

    Args:
        confirm: returns the schedule with the times that it ships with, or raises; it may hold a play-off for them.
        trial: runs a schedule at other sizes; None skips that.
        guard: also write a C header that calls another kernel at sizes that the schedule does not take.

    Raises:
        RunFolderError: a run folder is damaged, or has no winner or an unconfirmed one; `output` has foreign or changed
            files.
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
            proven = prove_schedule(confirm(run, program), program, sources.compiler, sdk_version)
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
