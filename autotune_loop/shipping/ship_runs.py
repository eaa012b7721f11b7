"""`sdk ship`: from runs to a folder to commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from autotune_loop.shipping.files.guard_header import guard_file, print_guard_header
from autotune_loop.shipping.generator_sources import GeneratorSources
from autotune_loop.shipping.proven_parameters import prove_parameters, shipped_set
from autotune_loop.shipping.proven_schedule import ProvenSchedule, prove_schedule
from autotune_loop.shipping.run_parameters import RunParameters
from autotune_loop.shipping.run_schedule import RunSchedule
from autotune_loop.shipping.run_winner import RunWinner
from autotune_loop.shipping.run_winners import read_run_winners
from autotune_loop.shipping.ship_folder import open_ship_folder, write_ship_folder
from autotune_loop.shipping.ship_manifest import ShipManifest, ShippedParameters, ShippedSchedule
from autotune_loop.shipping.sizes.trial import TriedSizes, check_acceptance
from targets.errors import RunFolderError, UsageError
from targets.generator.program import GeneratorProgram

Confirmation = Callable[[RunWinner, GeneratorProgram], RunWinner]
SizeTrial = Callable[[ProvenSchedule], TriedSizes]
Progress = Callable[[str], None]


def require_confirmed(run: RunWinner, program: GeneratorProgram) -> RunWinner:
    """The winner with the times of the run's own play-off.

    Raises:
        RunFolderError: that has not confirmed it.
    """
    published = run.facts.published
    if published.confirmed:
        return run
    why = published.message.removeprefix("Unconfirmed: ").rstrip(".")
    raise RunFolderError(
        f"The winner {run.path} is unconfirmed: {why}.",
        next_step=f"Hold a play-off now with --play-off, continue the run (sdk autotune --resume {run.folder}),"
        " or ship it as it is with --allow-unconfirmed.",
    )


def allow_unconfirmed(run: RunWinner, program: GeneratorProgram) -> RunWinner:
    """The winner as the run has it; one that no play-off has confirmed is shipped with that said in its files."""
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
    """Write the winners of the runs into the folder `output`, beside those for other targets.

    Args:
        confirm: returns the schedule with the times that it ships with, or raises; it may hold a play-off for them.
        trial: runs a schedule at other sizes; None skips that. Parameters are not tried at other sizes.
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
    found = [winner for folder in runs for winner in read_run_winners(folder)]
    _check_different(found)
    shipped: list[ShippedSchedule] = []
    sets: list[ShippedParameters] = []
    texts: dict[str, str] = {}
    for run in found:
        progress(f"checking {run.name} for {run.profile_name} against its generator")
        with sources.open(run) as program:
            confirmed = confirm(run, program)
            if isinstance(confirmed, RunParameters):
                parameters = prove_parameters(confirmed, program, sources.compiler, sdk_version)
                sets.append(parameters.shipped)
                texts |= parameters.texts
                continue
            assert isinstance(confirmed, RunSchedule)
            proven = prove_schedule(confirmed, program, sources.compiler, sdk_version)
            schedule = proven.shipped
            if confirmed.facts.published.parameters:
                belongs = shipped_set(confirmed, schedule.provenance)
                sets.append(belongs.shipped)
                texts |= belongs.texts
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
    return write_ship_folder(output, shipped, texts, sets)


def _check_different(found: Sequence[RunWinner]) -> None:
    first: dict[tuple[str, str], RunWinner] = {}
    for run in found:
        other = first.setdefault((run.name, run.profile_name), run)
        if other is not run:
            raise UsageError(
                f"{other.folder} and {run.folder} are both runs of {run.name} for {run.profile_name}.",
                next_step="Ship one of them.",
            )
