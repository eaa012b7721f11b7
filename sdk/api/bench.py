"""`sdk.bench`, `sdk.play_off` and `sdk.func_times`: check and time schedules side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from halide_autotune.autotune_loop.measure.comparison import ComparedSchedule, compare_schedules
from halide_autotune.autotune_loop.measure.func_comparison import ProfiledSchedule, compare_funcs
from halide_autotune.autotune_loop.play_off.header_play_off import HeaderPlayOff, decide_winner
from halide_autotune.autotune_loop.specification.objective import check_weighted_devices
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.sdk.api.opened_plan import opened_plan
from halide_autotune.sdk.options.generator_spec import GeneratorSpec, asked_options
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.profile.profile import OWN_SCHEDULE

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
    with opened_plan(generator, schedules, asked, progress, settings) as plan:
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
    with opened_plan(generator, schedules, asked, progress, settings) as plan:
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
    with opened_plan(generator, schedules, asked, progress, settings) as plan:
        return compare_funcs(plan, progress)
