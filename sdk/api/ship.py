"""`sdk.ship` and `sdk.check_shipped`: write headers to commit, and check that they still fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from halide_autotune.autotune_loop.shipping.check_folder import CheckedFolder
from halide_autotune.autotune_loop.shipping.check_folder import check_folder as check
from halide_autotune.autotune_loop.shipping.confirmation import TrialPlace, confirm_winner
from halide_autotune.autotune_loop.shipping.generator_sources import GeneratorSources
from halide_autotune.autotune_loop.shipping.proven_schedule import ProvenSchedule
from halide_autotune.autotune_loop.shipping.run_schedule import RunSchedule
from halide_autotune.autotune_loop.shipping.run_winner import RunWinner
from halide_autotune.autotune_loop.shipping.run_winners import read_run_winners
from halide_autotune.autotune_loop.shipping.ship_manifest import ShipManifest
from halide_autotune.autotune_loop.shipping.ship_runs import (
    ShipRequest,
    allow_unconfirmed,
    require_confirmed,
    ship_runs,
)
from halide_autotune.autotune_loop.shipping.sizes.request import parse_accepted_size
from halide_autotune.autotune_loop.shipping.sizes.trial import TriedSizes, try_sizes
from halide_autotune.autotune_loop.store.run_record import read_run_record
from halide_autotune.sdk.options.ship_options import ShipOptions
from halide_autotune.sdk.output import sdk_version
from halide_autotune.sdk.project.preparation import Workbench, named_generator, open_workbench
from halide_autotune.sdk.select.trial_place import open_trial_place
from halide_autotune.sdk.settings import Settings, read_settings
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.generator.program import GeneratorProgram
from halide_autotune.targets.generator.reference import (
    GeneratorKind,
    GeneratorReference,
    parse_generator,
    parse_parameters,
)
from halide_autotune.targets.hexagon.sdk import HEXAGON_SDK_OPTION
from halide_autotune.targets.toolchain.cpp_build import CppBuild
from halide_autotune.targets.values.options import check_options, with_whole_paths


def ship(
    runs: Sequence[Path],
    output: Path,
    options: ShipOptions | None = None,
    *,
    progress: Callable[[str], None] = lambda text: None,
    settings: Settings | None = None,
) -> ShipManifest:
    """Put the winners of runs into a folder to commit: a C++ header and a Python module for each generator and target.

    Parameters that were tuned are written for `sdk.toml`, for CMake and for a command line instead.

    Args:
        output: a new folder, or one that was shipped before: schedules for other targets stay in it.
        options: a schedule that does not take an accepted size, or gives a wrong output at any size tried, is not
            shipped; nor is one that does not win the play-off, or that no play-off has confirmed.
        progress: called with a phrase at every step.

    Raises:
        SdkError: one of its children, for everything that a user can fix.
    """
    settings = settings or read_settings()
    options = check_options(options or ShipOptions())
    incumbent, budget_s, neighbours = options.incumbent, options.budget_s, not options.no_sizes
    asked = [parse_accepted_size(text) for text in options.accept_sizes]
    _check_names([name for name, _ in asked if name], runs)
    holds_play_off = options.play_off or incumbent is not None
    if holds_play_off and options.allow_unconfirmed:
        raise UsageError(
            "--allow-unconfirmed cannot be used with --play-off or --incumbent.",
            next_step="Leave --allow-unconfirmed out.",
        )
    if options.guard and not (asked or neighbours):
        raise UsageError("--guard needs the sizes that were tried.", next_step="Leave --no-sizes out.")
    if options.guard or asked:
        _check_schedules("--guard" if options.guard else "--accept-size", runs)
    if options.devices.hexagon_sdk_root is not None:
        _check_hexagon(runs)
        settings = replace(settings, hexagon_sdk_root=options.devices.hexagon_sdk_root.absolute())
    workbench = open_workbench(settings, progress)

    devices = replace(options.devices, hexagon_sdk_root=None)  # the settings have it, for the runs that need it

    def place_for(run: RunSchedule) -> TrialPlace:
        return open_trial_place(run, devices, workbench, settings, progress)

    def confirm(run: RunWinner, program: GeneratorProgram) -> RunWinner:
        if not isinstance(run, RunSchedule):
            raise UsageError(
                f"--play-off is for schedules; {run.folder} has tuned parameters.",
                next_step=f"Continue the run, which holds its play-off at the end: sdk autotune --resume {run.folder}",
            )
        return confirm_winner(run, program, incumbent, place_for(run), budget_s, progress)

    def trial(proven: ProvenSchedule) -> TriedSizes:
        sizes = [size for name, size in asked if name in ("", proven.run.name)]
        return try_sizes(proven, sizes, place_for(proven.run), progress, neighbours=neighbours)

    as_recorded = allow_unconfirmed if options.allow_unconfirmed else require_confirmed
    return ship_runs(
        runs,
        output,
        given_sources(options.generators, options.build, workbench, settings),
        ShipRequest(
            sdk_version(),
            confirm=confirm if holds_play_off else as_recorded,
            trial=trial if asked or neighbours else None,
            guard=options.guard,
            for_sizes=not options.one_schedule,
        ),
        progress,
    )


def _check_names(names: Sequence[str], runs: Sequence[Path]) -> None:
    if not names:
        return
    tuned = sorted({winner.name for folder in runs for winner in read_run_winners(folder)})
    if unknown := [name for name in names if name not in tuned]:
        raise UsageError(
            f"--accept-size names {unknown[0]!r}, which none of the runs tuned.",
            next_step=f"Choose one of: {', '.join(tuned)}.",
        )


def _check_schedules(option: str, runs: Sequence[Path]) -> None:
    for folder in runs:
        if any(task.space is not None for task in read_run_record(folder).spec.tasks):
            raise UsageError(
                f"{option} is for schedules; {folder} has tuned parameters, which are not tried at other sizes.",
                next_step=f"Leave {option} out, and run your own tests with the parameters.",
            )


def _check_hexagon(runs: Sequence[Path]) -> None:
    if not any(read_run_record(folder).spec.profile.is_hexagon for folder in runs):
        raise UsageError(
            f"{HEXAGON_SDK_OPTION} is for Hexagon runs, and none of these is one.", next_step="Leave it out."
        )


def check_shipped(
    folder: Path,
    *,
    generators: Sequence[str] = (),
    parameters: Iterable[str] = (),
    build: CppBuild | None = None,
    progress: Callable[[str], None] = lambda text: None,
    settings: Settings | None = None,
) -> CheckedFolder:
    """Check that a shipped folder is unchanged, and that its schedules fit these generators as they are now.

    Args:
        parameters: generator parameters that replace the recorded ones.
        build: what else C++ generators are made from.
        progress: called with a phrase at every step that may take long.

    Raises:
        SdkError: one of its children, for everything that a user can fix.
    """
    settings = settings or read_settings()
    sources = given_sources(generators, build or CppBuild(), open_workbench(settings, progress), settings)
    return check(folder, sources, parse_parameters(parameters), sources.halide)


def given_sources(
    generators: Sequence[str], build: CppBuild, workbench: Workbench, settings: Settings
) -> GeneratorSources:
    """The generators that a user names, as the check of a folder opens them.

    Raises:
        GeneratorError, UsageError: one cannot be what is meant.
    """
    build = with_whole_paths(build)
    given = tuple(_given(text, build, workbench, settings) for text in generators)
    return GeneratorSources(given, workbench.halide, workbench.compiler, settings.environment)


def _given(text: str, build: CppBuild, workbench: Workbench, settings: Settings) -> GeneratorReference:
    if build.cmake is not None or build.cmake_is_built:
        return named_generator(text, (), workbench, settings, build)
    reference = parse_generator(text)
    return replace(reference, build=build) if reference.kind is GeneratorKind.CPP else reference
