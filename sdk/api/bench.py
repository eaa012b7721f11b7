"""`sdk.bench` and `sdk.play_off`: check and time schedules side by side."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune_loop.measure.comparison import ComparedSchedule, compare_schedules
from autotune_loop.measure.kernel_bench import BenchPlan
from autotune_loop.play_off.header_play_off import HeaderPlayOff, decide_winner
from autotune_loop.specification.objective import Objective
from autotune_loop.specification.tune_request import Folders
from devices.timing.measure_settings import KernelInputs, MeasureSettings
from sdk.options.objective_arguments import check_weighted_devices
from sdk.project.preparation import open_named_generator, open_workbench
from sdk.select.chosen_devices import device_names, find_devices
from sdk.settings import Settings, read_settings
from targets.build.artifacts import KernelRecipe
from targets.build.executable import BuildTools
from targets.cuda.ptxas import find_ptxas
from targets.errors import UsageError
from targets.schedule.autoschedulers import OWN_SCHEDULE, ScheduleChoice, resolve_schedule

Progress = Callable[[str], None]


def _silent(text: str) -> None:
    """Report nothing."""


def bench(
    generator: str,
    schedules: Sequence[str] = (OWN_SCHEDULE,),
    *,
    target: str | None = None,
    device: str | Sequence[str] | None = None,
    inventory: Path | None = None,
    parameters: Iterable[str] = (),
    parallelism: int | None = None,
    turns: int = 5,
    inputs: KernelInputs | None = None,
    measuring: MeasureSettings | None = None,
    clock: str | None = None,
    hexagon_sdk_root: Path | None = None,
    progress: Progress = _silent,
    settings: Settings | None = None,
) -> list[ComparedSchedule]:
    """Time schedules of one generator in turns, each output first compared with an independent schedule's.

    Args:
        schedules: each as in `sdk.build`.
        target, device, inventory, clock, hexagon_sdk_root: as in `sdk.autotune`; of several devices each times in turn.
        turns: how often each schedule is timed; they alternate, so that a drift affects all alike.
        progress: called with a phrase at every step.

    Raises:
        SdkError: one of its children, for everything that a user can fix.
    """
    where = _Where(
        target, device, inventory, parameters, parallelism, inputs, measuring, clock, hexagon_sdk_root, settings
    )
    with _opened_plan(generator, schedules, where, progress) as plan:
        return compare_schedules(plan, turns, progress)


def play_off(
    generator: str,
    schedules: Sequence[str],
    *,
    target: str | None = None,
    device: str | Sequence[str] | None = None,
    inventory: Path | None = None,
    parameters: Iterable[str] = (),
    parallelism: int | None = None,
    objective: Objective | None = None,
    seed: int = 0,
    budget_s: float | None = None,
    inputs: KernelInputs | None = None,
    measuring: MeasureSettings | None = None,
    clock: str | None = None,
    hexagon_sdk_root: Path | None = None,
    progress: Progress = _silent,
    settings: Settings | None = None,
) -> HeaderPlayOff:
    """Decide which schedule to ship: the first, which is in use, unless another beats it with 95 % confidence.

    Args:
        schedules: at least two, each as in `sdk.build`.
        target, device, inventory, clock, hexagon_sdk_root: as in `sdk.autotune`; every turn is done on all devices.
        objective: what counts where there are several devices; None takes the geometric mean.
        seed: of the order within the turns.
        budget_s: past it no further turn begins.

    Raises:
        SdkError: one of its children, for everything that a user can fix.
    """
    if len(schedules) < 2:
        raise UsageError("A play-off needs at least two schedules.", next_step="Give another one with --schedule.")
    where = _Where(
        target, device, inventory, parameters, parallelism, inputs, measuring, clock, hexagon_sdk_root, settings
    )
    with _opened_plan(generator, schedules, where, progress) as plan:
        check_weighted_devices(objective or Objective(), [device.name for device in plan.devices])
        return decide_winner(plan, 0, objective=objective, seed=seed, budget_s=budget_s, progress=progress)


@dataclass(frozen=True)
class _Where:
    """The options that both have."""

    target: str | None
    device: str | Sequence[str] | None
    inventory: Path | None
    parameters: Iterable[str]
    parallelism: int | None
    inputs: KernelInputs | None
    measuring: MeasureSettings | None
    clock: str | None
    hexagon_sdk_root: Path | None
    settings: Settings | None


@contextlib.contextmanager
def _opened_plan(generator: str, schedules: Sequence[str], where: _Where, progress: Progress) -> Iterator[BenchPlan]:
    """Yield everything that is needed to build and time; close the generator afterwards."""
    settings = where.settings or read_settings()
    chosen = find_devices(
        where.target,
        device_names(where.device),
        where.parallelism,
        where.inventory,
        settings,
        progress,
        clock=where.clock,
        hexagon_sdk_root=where.hexagon_sdk_root,
    )
    profile, threads = chosen.choice.profile, chosen.choice.parallelism
    if chosen.choice.note:
        progress(chosen.choice.note)
    toolchain = chosen.open_toolchain(settings)
    tools = open_workbench(settings)
    progress("opening the generator")
    reference, program = open_named_generator(generator, tuple(where.parameters), tools, settings)
    with contextlib.closing(program):
        assert reference.name is not None
        choices = [resolve_schedule(s, profile, threads, tools.halide, tools.compiler) for s in schedules]
        own = ScheduleChoice(OWN_SCHEDULE, None)
        ptxas = find_ptxas(settings.environment)
        recipe = KernelRecipe(program, reference.name, reference.name, reference.parameters, profile, own, ptxas)
        yield BenchPlan(
            recipe=recipe,
            schedules=choices,
            devices=chosen.choice.devices,
            inputs=where.inputs or KernelInputs(),
            settings=where.measuring or MeasureSettings(),
            tools=BuildTools(tools.halide, tools.cache, toolchain),
            folders=Folders(settings.cache_folder, settings.cache_folder / "locks", settings.environment),
            connections=chosen.connections,
        )
