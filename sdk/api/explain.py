"""`sdk.explain` and `sdk.explain_run`: why a schedule is fast, and what limits it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from halide_autotune.autotune_loop.explain.explain_schedules import explain_schedules
from halide_autotune.autotune_loop.explain.explained import Explanation
from halide_autotune.autotune_loop.explain.explanation_file import write_explanations
from halide_autotune.autotune_loop.report.recorded_run import RecordedRun, read_recorded_run
from halide_autotune.autotune_loop.report.schedule_table import header_text
from halide_autotune.autotune_loop.shipping.confirmation import OWN_CHOICE, TrialPlace
from halide_autotune.autotune_loop.shipping.generator_sources import GeneratorSources
from halide_autotune.autotune_loop.shipping.run_schedule import RunSchedule
from halide_autotune.autotune_loop.shipping.run_winners import read_run_winners
from halide_autotune.autotune_loop.specification.options import DeviceOptions, RunOptions
from halide_autotune.autotune_loop.store.published import DEFAULT, words_for
from halide_autotune.sdk.api.opened_plan import opened_plan_on
from halide_autotune.sdk.options.generator_spec import GeneratorSpec, asked_options
from halide_autotune.sdk.project.preparation import open_workbench
from halide_autotune.sdk.select.chosen_devices import find_devices
from halide_autotune.sdk.select.trial_place import open_trial_place
from halide_autotune.sdk.settings import Settings, read_settings
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.process.content_cache import file_sha256
from halide_autotune.targets.schedule.autoschedulers import ScheduleChoice
from halide_autotune.targets.schedule.plugins import schedule_autoscheduler

Progress = Callable[[str], None]


def explain(
    generator: str | GeneratorSpec,
    schedule: str,
    compare_with: Sequence[str] = (),
    *,
    target: str | None = None,
    device: str | Sequence[str] = (),
    options: RunOptions | None = None,
    progress: Progress = lambda text: None,
    settings: Settings | None = None,
) -> list[Explanation]:
    """Explain a schedule of a generator, beside others: one explanation for each device.

    Args:
        generator, target, device, options, progress: as for `sdk.bench`.
        schedule: as in `sdk.build`.
        compare_with: further schedules; what has changed is told against the last of them. By default the profile's
            autoscheduler.

    Raises:
        SdkError: one of its children, for everything that a user can fix.
    """
    settings = settings or read_settings()
    asked = asked_options(options, target, device)
    chosen = find_devices(asked.devices, settings, progress)
    others = tuple(compare_with) or (chosen.choice.profile.autoscheduler.name.lower(),)
    with opened_plan_on(chosen, generator, (*others, schedule), asked, progress, settings) as plan:
        return explain_schedules(plan, progress)


def explain_run(
    run: str | Path,
    devices: DeviceOptions | None = None,
    *,
    progress: Progress = lambda text: None,
    settings: Settings | None = None,
) -> dict[int, list[Explanation]]:
    """Explain the winners of a run, by argument set: each beside the default schedule and the generator's own.

    The explanation is kept in the run's folder, and its report shows it.

    Args:
        devices: other devices than the run's.

    Raises:
        SdkError: one of its children: the run, the generator or the device cannot be used, or nothing but parameters
            was tuned.
    """
    settings, folder = settings or read_settings(), Path(run)
    winners = [winner for winner in read_run_winners(folder) if isinstance(winner, RunSchedule)]
    if not winners:
        raise UsageError(
            f"{folder} has tuned parameters and no schedule.", next_step="Compare its kernels: sdk bench --by-func."
        )
    recorded, workbench = read_recorded_run(folder), open_workbench(settings, progress)
    sources = GeneratorSources((), workbench.halide, workbench.compiler, settings.environment)
    found: dict[int, tuple[str, list[Explanation]]] = {}
    for winner in winners:
        place = open_trial_place(winner, devices or DeviceOptions(), workbench, settings, progress)
        choices = _choices(recorded, winner, place)
        with sources.open(winner) as program:
            explained = explain_schedules(place.bench_plan(winner, program, choices), progress)
        found[winner.index] = (file_sha256(winner.header), explained)
    write_explanations(folder, found)
    return {index: explained for index, (_, explained) in found.items()}


def _choices(run: RecordedRun, winner: RunSchedule, place: TrialPlace) -> list[ScheduleChoice]:
    """The default schedule as the run had it, the generator's own, and the winner."""
    defaults = (task.default for task in run.tasks if task.task_index == winner.index)
    text = next((header_text(run, default) for default in defaults if default is not None), "")
    choices = [
        ScheduleChoice(words_for(DEFAULT), schedule_autoscheduler(text, place.compiler))
        if text
        else place.default_choice()
    ]
    if winner.task.schedules_itself:
        choices.append(OWN_CHOICE)
    return [*choices, place.tuned_choice(winner)]
