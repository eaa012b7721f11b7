"""`sdk.bench`, `sdk.play_off` and `sdk.func_times`: check and time schedules side by side."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from autotune_loop.measure.comparison import ComparedSchedule, compare_schedules
from autotune_loop.measure.func_comparison import ProfiledSchedule, compare_funcs
from autotune_loop.measure.kernel_bench import BenchPlan
from autotune_loop.play_off.header_play_off import HeaderPlayOff, decide_winner
from autotune_loop.specification.objective import check_weighted_devices
from autotune_loop.specification.options import RunOptions
from devices.timing.measure_settings import MeasureSettings
from sdk.options.generator_spec import GeneratorSpec, asked_options, generator_specs
from sdk.project.input_files import prepared_inputs
from sdk.project.pipeline_facts import prepare_pipeline
from sdk.project.preparation import open_named_generator, open_workbench
from sdk.select.chosen_devices import find_devices
from sdk.settings import Settings, read_settings
from targets.build.artifacts import KernelRecipe
from targets.build.executable import BuildTools
from targets.build.kernel_sources import KernelSources
from targets.cuda.ptxas import find_ptxas
from targets.errors import UsageError
from targets.pipeline.inspection import Inspected
from targets.schedule.autoschedulers import OWN_SCHEDULE, ScheduleChoice, resolve_schedule

Progress = Callable[[str], None]


def bench(
    generator: str | GeneratorSpec,
    schedules: Sequence[str] = (OWN_SCHEDULE,),
    *,
    target: str | None = None,
    device: str | Sequence[str] = (),
    options: RunOptions | None = None,
    turns: int = 5,
    progress: Progress = lambda text: None,
    settings: Settings | None = None,
) -> list[ComparedSchedule]:
    """Time schedules of one generator in turns, each output first compared with an independent schedule's.

    Args:
        generator: as for `sdk.autotune`, with its parameters.
        schedules: each as in `sdk.build`.
        target, device: as in `sdk.autotune`; of several devices each times in turn.
        options: those of the devices, the inputs and the measuring count.
        turns: how often each schedule is timed; they alternate, so that a drift affects all alike.
        progress: called with a phrase at every step.

    Returns:
        One for each schedule and device; a schedule that cannot be built or fails has its failure.

    Raises:
        SdkError: one of its children, for everything that a user can fix.
    """
    asked = asked_options(options, target, device)
    with _opened_plan(generator, schedules, asked, progress, settings) as plan:
        return compare_schedules(replace(plan, needs_all=False), turns, progress)


def play_off(
    generator: str | GeneratorSpec,
    schedules: Sequence[str],
    *,
    target: str | None = None,
    device: str | Sequence[str] = (),
    options: RunOptions | None = None,
    progress: Progress = lambda text: None,
    settings: Settings | None = None,
) -> HeaderPlayOff:
    """Decide which schedule to ship: the first, which is in use, unless another beats it with 95 % confidence.

    Args:
        generator: as for `sdk.autotune`, with its parameters.
        schedules: at least two, each as in `sdk.build`.
        target, device: as in `sdk.autotune`; every turn is done on all devices.
        options: as for `bench`; and the objective, the seed of the order within the turns, and the budget, past which
            no further turn begins.

    Raises:
        SdkError: one of its children, for everything that a user can fix.
    """
    if len(schedules) < 2:
        raise UsageError("A play-off needs at least two schedules.", next_step="Give another one with --schedule.")
    asked = asked_options(options, target, device)
    objective, seed, budget_s = asked.play_off.objective, asked.search.seed, asked.limits.budget_s
    with _opened_plan(generator, schedules, asked, progress, settings) as plan:
        check_weighted_devices(objective, [device.name for device in plan.devices])
        return decide_winner(plan, objective=objective, seed=seed, budget_s=budget_s, progress=progress)


def func_times(
    generator: str | GeneratorSpec,
    schedules: Sequence[str] = (OWN_SCHEDULE,),
    *,
    target: str | None = None,
    device: str | Sequence[str] = (),
    options: RunOptions | None = None,
    progress: Progress = lambda text: None,
    settings: Settings | None = None,
) -> list[ProfiledSchedule]:
    """Tell what each Func takes in schedules of one generator, by Halide's sampling profiler.

    Args:
        generator, schedules, target, device, options, progress: as for `bench`.

    Returns:
        One for each schedule and device. The profiler itself takes time: compare whole schedules with `bench`.

    Raises:
        SdkError: one of its children, for everything that a user can fix.
    """
    asked = asked_options(options, target, device)
    with _opened_plan(generator, schedules, asked, progress, settings) as plan:
        return compare_funcs(plan, progress)


@contextlib.contextmanager
def _opened_plan(
    generator: str | GeneratorSpec,
    schedules: Sequence[str],
    asked: RunOptions,
    progress: Progress,
    settings: Settings | None,
) -> Iterator[BenchPlan]:
    """Yield everything that is needed to build and time; close the generator afterwards."""
    settings = settings or read_settings()
    (spec,) = generator_specs(generator)
    chosen = find_devices(asked.devices, settings, progress)
    profile, threads = chosen.choice.profile, chosen.choice.parallelism
    if chosen.choice.note:
        progress(chosen.choice.note)
    toolchain = chosen.open_toolchain(settings)
    tools = open_workbench(settings, progress)
    progress("opening the generator")
    with contextlib.ExitStack() as exits:
        opened = open_named_generator(spec.generator, spec.parameters, tools, settings, spec.build)
        reference, program = exits.enter_context(opened)
        assert reference.name is not None
        choices = [resolve_schedule(s, profile, threads, tools.halide, tools.apply_header) for s in schedules]
        own = ScheduleChoice(OWN_SCHEDULE, None)
        ptxas = find_ptxas(settings.environment)
        name, parameters = reference.name, reference.parameters
        inspected = Inspected(program, name, parameters, profile.halide_target)
        preparation, inputs = prepare_pipeline(inspected, spec.estimates, asked.inputs, tools.compiler, tell=progress)
        inputs = exits.enter_context(prepared_inputs(inputs))
        recipe = KernelRecipe(program, name, name, parameters, profile, own, ptxas, preparation)
        yield BenchPlan(
            recipe=recipe,
            schedules=choices,
            devices=chosen.choice.devices,
            inputs=inputs,
            settings=MeasureSettings.by_clock(
                chosen.choice.devices[0].clock, asked.measure.precision, asked.measure.max_time_s
            ),
            tools=BuildTools(tools.halide, tools.cache, toolchain, KernelSources.of(reference.build)),
            workspace=chosen.workspace(settings),
        )
