"""`sdk ship`: from runs to a folder to commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from halide_autotune.autotune_loop.shipping.files.by_size_source import print_by_size_source
from halide_autotune.autotune_loop.shipping.files.guard_header import KernelArgument, guard_file, print_guard_header
from halide_autotune.autotune_loop.shipping.generator_sources import GeneratorSources
from halide_autotune.autotune_loop.shipping.proven_parameters import prove_parameters, shipped_set
from halide_autotune.autotune_loop.shipping.proven_schedule import ProvenSchedule, prove_schedule
from halide_autotune.autotune_loop.shipping.run_parameters import RunParameters
from halide_autotune.autotune_loop.shipping.run_schedule import RunSchedule
from halide_autotune.autotune_loop.shipping.run_winner import RunWinner
from halide_autotune.autotune_loop.shipping.run_winners import read_run_winners
from halide_autotune.autotune_loop.shipping.ship_folder import open_ship_folder, write_ship_folder
from halide_autotune.autotune_loop.shipping.ship_manifest import ShipManifest, ShippedParameters, ShippedSchedule
from halide_autotune.autotune_loop.shipping.sizes.trial import TriedSizes, check_acceptance
from halide_autotune.targets.errors import RunFolderError, UsageError
from halide_autotune.targets.generator.program import GeneratorProgram

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
    resume = f"ontinue the run (sdk autotune --resume {run.folder})"
    ways = f"C{resume}" if published.parameters else f"Hold a play-off now with --play-off, c{resume}"
    raise RunFolderError(
        f"The winner {run.path} is unconfirmed: {why}.",
        next_step=f"{ways}, or ship it as it is with --allow-unconfirmed.",
    )


def allow_unconfirmed(run: RunWinner, program: GeneratorProgram) -> RunWinner:
    """The winner as the run has it; one that no play-off has confirmed is shipped with that said in its files."""
    return run


@dataclass(frozen=True)
class ShipRequest:
    """What is done with each winner.

    Attributes:
        confirm: returns the schedule with the times that it ships with, or raises; it may hold a play-off for them.
        trial: runs a schedule at other sizes; None skips that. Parameters are not tried at other sizes.
        guard: also write a C header that calls another kernel at sizes that the schedule does not take.
        for_sizes: also ship the schedules that are for one size, with a C source that calls the kernel for the size.
    """

    sdk_version: str
    confirm: Confirmation = require_confirmed
    trial: SizeTrial | None = None
    guard: bool = False
    for_sizes: bool = True


def ship_runs(
    runs: Sequence[Path], output: Path, sources: GeneratorSources, request: ShipRequest, progress: Progress
) -> ShipManifest:
    """Write the winners of the runs into the folder `output`, beside those for other targets.

    Raises:
        RunFolderError: a run folder is damaged, or has no winner or an unconfirmed one; `output` has foreign or changed
            files.
        GeneratorError: a generator is not the one that was tuned, a header cannot be applied, a play-off is lost, or
            a size fails.
        UsageError: two runs are for one generator and target; schedules for single sizes are not to be tried.
        ToolchainError: no C++ compiler is installed.
    """
    open_ship_folder(output)
    found = [winner for folder in runs for winner in read_run_winners(folder)]
    _check_different(found)
    shipment = _Shipment(request, sources)
    for run in found:
        progress(f"checking {run.name} for {run.profile_name} against its generator")
        with sources.open(run) as program:
            shipment.add(request.confirm(run, program), program)
    return write_ship_folder(output, shipment.schedules, shipment.texts, shipment.sets)


@dataclass
class _Shipment:
    """Collects what is written."""

    request: ShipRequest
    sources: GeneratorSources
    schedules: list[ShippedSchedule] = field(default_factory=list)
    sets: list[ShippedParameters] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)

    def add(self, run: RunWinner, program: GeneratorProgram) -> None:
        """Prove a winner and take it in."""
        if isinstance(run, RunParameters):
            parameters = prove_parameters(run, program, self.sources.compiler, self.request.sdk_version)
            self.sets.append(parameters.shipped)
            self.texts |= parameters.texts
            return
        assert isinstance(run, RunSchedule)
        for_sizes = run.for_sizes() if self.request.for_sizes else []
        if for_sizes and self.request.trial is None:
            raise UsageError(
                f"{run.folder} has schedules for single sizes, which do not ship untried.",
                next_step="Leave --no-sizes out, or ship one schedule for all sizes with --one-schedule.",
            )
        schedule, signature = self._proven(run, program)
        if run.facts.published.parameters:
            belongs = shipped_set(run, schedule.provenance)
            self.sets.append(belongs.shipped)
            self.texts |= belongs.texts
        if self.request.guard:
            schedule = replace(schedule, guard=guard_file(schedule.name))
            self.texts[schedule.guard] = print_guard_header(schedule.name, signature)
        if for_sizes:
            schedule = replace(schedule, by_size=f"{schedule.function_name}_by_size.c")
            # The guard's question is answered by whichever kernel the size has.
            function = f"{schedule.name}_tuned" if self.request.guard else schedule.name
            used = run.facts.size_schedules
            self.texts[schedule.by_size] = print_by_size_source(schedule.name, function, signature, used)
        self.schedules.append(schedule)
        self.schedules += [self._proven(one, program)[0] for one in for_sizes]

    def _proven(
        self, run: RunSchedule, program: GeneratorProgram
    ) -> tuple[ShippedSchedule, tuple[KernelArgument, ...]]:
        """A schedule, tried at other sizes if that is asked, and the arguments of its kernel; else none."""
        proven = prove_schedule(run, program, self.sources.compiler, self.request.sdk_version)
        schedule = proven.shipped
        self.texts[schedule.header] = proven.header_text
        self.texts[schedule.python_module] = proven.module_text
        if self.request.trial is None:
            return schedule, ()
        tried = self.request.trial(proven)
        # What a schedule for one size does not take is left to the one for all sizes.
        check_acceptance(schedule.header, tried, self.request.guard or run.for_size is not None)
        return replace(schedule, sizes=tried.outcomes), tried.signature


def _check_different(found: Sequence[RunWinner]) -> None:
    first: dict[tuple[str, str], RunWinner] = {}
    for run in found:
        other = first.setdefault((run.name, run.profile_name), run)
        if other is not run:
            raise UsageError(
                f"{other.folder} and {run.folder} are both runs of {run.name} for {run.profile_name}.",
                next_step="Ship one of them.",
            )
