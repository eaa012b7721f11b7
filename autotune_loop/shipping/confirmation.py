"""A play-off before a schedule ships: against the header in use, or else against the default schedule."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from halide_autotune.autotune_loop.measure.kernel_bench import BenchPlan
from halide_autotune.autotune_loop.play_off.header_play_off import HeaderPlayOff, decide_winner
from halide_autotune.autotune_loop.play_off.times import DeviceTimes
from halide_autotune.autotune_loop.shipping.run_schedule import RunSchedule
from halide_autotune.autotune_loop.specification.workspace import Workspace
from halide_autotune.autotune_loop.store.published import DEFAULT, INCUMBENT, OWN, ScheduleTime, words_for
from halide_autotune.autotune_loop.store.run_record import RunRecord
from halide_autotune.devices.device import Device
from halide_autotune.devices.timing.measure_settings import MeasureSettings
from halide_autotune.targets.build.artifacts import KernelRecipe
from halide_autotune.targets.build.executable import BuildTools
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.program import GeneratorProgram
from halide_autotune.targets.pipeline.preparation import PipelinePreparation, build_preparation_plugin
from halide_autotune.targets.profile.profile import TargetProfile
from halide_autotune.targets.schedule.autoschedulers import ScheduleChoice, profile_autoscheduler
from halide_autotune.targets.schedule.header import read_schedule
from halide_autotune.targets.schedule.plugins import schedule_autoscheduler
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler


@dataclass(frozen=True)
class TrialPlace:
    """The devices and tools that a schedule is tried with before it ships.

    Attributes:
        devices: the run's or others of its profile; play-offs use all of them, sizes are tried on the first.
        profile: the run's.
        workspace: this machine, with the connections of remote devices.
        ptxas: NVIDIA's assembler, if it is installed.
    """

    devices: tuple[Device, ...]
    profile: TargetProfile
    tools: BuildTools
    compiler: HostCppCompiler
    workspace: Workspace
    ptxas: Path | None = None

    @property
    def device(self) -> Device:
        """The first of the devices."""
        return self.devices[0]

    def recipe(self, run: RunSchedule, program: GeneratorProgram, choice: ScheduleChoice) -> KernelRecipe:
        """The run's generator with a schedule, as it is built here."""
        task = run.task
        return KernelRecipe(
            program=program,
            generator_name=task.generator_name,
            function_name=task.function_name,
            parameters=run.parameters,
            profile=self.profile,
            schedule=choice,
            ptxas=self.ptxas,
            preparation=PipelinePreparation(build_preparation_plugin(self.compiler), task.estimates),
        )

    def bench_plan(self, run: RunSchedule, program: GeneratorProgram, choices: Sequence[ScheduleChoice]) -> BenchPlan:
        """How schedules of the run's generator are built and timed here."""
        return BenchPlan(
            recipe=self.recipe(run, program, choices[0]),
            schedules=choices,
            devices=self.devices,
            inputs=run.inputs,
            settings=MeasureSettings.by_clock(self.device.clock),
            tools=self.tools,
            workspace=self.workspace,
        )

    def default_choice(self) -> ScheduleChoice:
        """What a user gets without tuning."""
        return ScheduleChoice(
            words_for(DEFAULT), profile_autoscheduler(self.tools.halide, self.profile, self.device.threads, {})
        )

    def tuned_choice(self, run: RunSchedule) -> ScheduleChoice:
        """What the run has found."""
        return ScheduleChoice(_TUNED, schedule_autoscheduler(run.header_text, self.compiler))


_TUNED = "the tuned schedule"
OWN_CHOICE = ScheduleChoice(words_for(OWN), None)


def confirm_winner(
    run: RunSchedule,
    program: GeneratorProgram,
    incumbent: Path | None,
    place: TrialPlace,
    budget_s: float | None,
    progress: Callable[[str], None],
) -> RunSchedule:
    """Hold a play-off; returns the schedule with the play-off's times.

    Args:
        incumbent: the header in use; None compares with the generator's own schedule, else with the default.
        budget_s: after it no further turn begins.

    Raises:
        GeneratorError: the schedule did not win, or a schedule cannot be built.
        ToolchainError, DeviceError, EmulatorError: what is missing or broken.
    """
    choices = [place.default_choice(), place.tuned_choice(run)]
    baseline = DEFAULT
    if incumbent is not None:
        baseline, header = INCUMBENT, schedule_autoscheduler(read_schedule(incumbent), place.compiler)
        choices.insert(0, ScheduleChoice(words_for(INCUMBENT), header))
    elif run.task.schedules_itself:
        baseline = OWN
        choices.insert(0, OWN_CHOICE)
    plan = place.bench_plan(run, program, choices)
    result = decide_winner(plan, objective=run.objective, budget_s=budget_s, progress=progress)
    won = len(choices) - 1
    if result.winner != won:
        raise _not_shipped(run, result)
    default_time = _time(result.times[won - 1]) if result.times[won - 1] else None
    published = replace(
        run.facts.published,
        confirmed=True,
        reason=result.verdict.reason.value,
        message=result.verdict.message,
        tuned=_time(result.times[won]),
        default=default_time,
        no_default=run.facts.published.no_default if default_time is None else None,
        speed_up=result.verdict.speed_up(baseline),
        own=_time(result.times[0]) if baseline == OWN and result.times[0] else None,
        by_device={},
    )
    # The play-off's default is of the full search, whatever the run had time for.
    facts = replace(
        run.facts, published=published, clock=result.clock, tuned_unix_s=time.time(), default_is_greedy=False
    )
    return replace(run, facts=facts, record=_record_of(run, place, result.clock))


def _record_of(run: RunSchedule, place: TrialPlace, clock: str) -> RunRecord:
    """The run's record, with the devices of the play-off if they are others."""
    names = tuple(device.name for device in place.devices)
    record = run.record
    if names == record.made_with.devices:
        return record
    made_with = replace(record.made_with, clock=clock, devices=names, processor="")
    return RunRecord(replace(record.spec, parallelism=place.device.threads), made_with)


def _time(by_device: Mapping[str, DeviceTimes]) -> ScheduleTime:
    """The time on the first device."""
    return next(iter(by_device.values())).schedule_time


def _not_shipped(run: RunSchedule, result: HeaderPlayOff) -> GeneratorError:
    failure = result.failures.get(_TUNED, "")
    return GeneratorError(
        f"{run.header} is not shipped. {result.verdict.message} {failure}".rstrip(),
        next_step="Keep the schedule in use, or tune longer.",
    )
