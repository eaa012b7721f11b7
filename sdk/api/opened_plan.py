"""From what a user names to a plan that can be built and timed: one generator, its schedules, and devices."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from halide_autotune.autotune_loop.measure.kernel_bench import BenchPlan
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.devices.timing.measure_settings import MeasureSettings
from halide_autotune.sdk.options.generator_spec import GeneratorSpec, generator_specs
from halide_autotune.sdk.project.input_files import prepared_inputs
from halide_autotune.sdk.project.pipeline_facts import prepare_pipeline
from halide_autotune.sdk.project.preparation import open_named_generator, open_workbench
from halide_autotune.sdk.select.chosen_devices import ChosenDevices, find_devices
from halide_autotune.sdk.settings import Settings, read_settings
from halide_autotune.targets.build.artifacts import KernelRecipe
from halide_autotune.targets.build.executable import BuildTools
from halide_autotune.targets.build.kernel_sources import KernelSources
from halide_autotune.targets.cuda.ptxas import find_ptxas
from halide_autotune.targets.pipeline.inspection import Inspected
from halide_autotune.targets.profile.profile import OWN_SCHEDULE
from halide_autotune.targets.schedule.autoschedulers import ScheduleChoice, resolve_schedule

Progress = Callable[[str], None]


@contextlib.contextmanager
def opened_plan(
    generator: str | GeneratorSpec,
    schedules: Sequence[str],
    asked: RunOptions,
    progress: Progress,
    settings: Settings | None,
) -> Iterator[BenchPlan]:
    """Yield everything that is needed to build and time on the devices that are asked for; close the generator then.

    Raises:
        SdkError: one of its children, for everything that a user can fix.
    """
    settings = settings or read_settings()
    chosen = find_devices(asked.devices, settings, progress)
    with opened_plan_on(chosen, generator, schedules, asked, progress, settings) as plan:
        yield plan


@contextlib.contextmanager
def opened_plan_on(
    chosen: ChosenDevices,
    generator: str | GeneratorSpec,
    schedules: Sequence[str],
    asked: RunOptions,
    progress: Progress,
    settings: Settings,
) -> Iterator[BenchPlan]:
    """The same on devices that are known.

    Raises:
        SdkError: one of its children, for everything that a user can fix.
    """
    (spec,) = generator_specs(generator)
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
