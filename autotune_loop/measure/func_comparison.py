"""`sdk bench --by-func`: what each Func takes in schedules of one generator, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from halide_autotune.autotune_loop.execute.device_session import Question
from halide_autotune.autotune_loop.measure.kernel_bench import BenchPlan, Progress, T, open_kernel_bench
from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.timing.func_times import PROFILE_FEATURE, FuncTimes, time_funcs
from halide_autotune.devices.timing.measurement import MeasureFailure, MeasureFailureReason
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.profile.profile import TargetProfile
from halide_autotune.targets.profile.target_features import with_target_features

# Funcs that take less than this share of every schedule are told together.
_SMALLEST_SHARE = 0.005


@dataclass(frozen=True)
class ProfiledSchedule:
    """What a schedule's Funcs take on a device.

    Attributes:
        label: as the user named the schedule.
        result: why there are no times, or the times.
    """

    device: str
    label: str
    result: FuncTimes | MeasureFailure

    @property
    def has_times(self) -> bool:
        """Whether it did not fail."""
        return isinstance(self.result, FuncTimes)


@dataclass(frozen=True)
class FuncTable:
    """What Funcs take on one device, in each schedule.

    Attributes:
        times: by the schedules' labels.
        failures: label → why a schedule has no times.
        rows: the times of each Func, in the order of `times`.
    """

    device: str
    times: Mapping[str, FuncTimes]
    failures: Mapping[str, str]
    rows: Sequence[FuncRow]


@dataclass(frozen=True)
class FuncRow:
    """One Func in several schedules, or several that take next to nothing.

    Attributes:
        times_s: of a call, by schedule; None where it is inlined, or not there.
    """

    name: str
    times_s: tuple[float | None, ...]


def func_rows(schedules: Sequence[FuncTimes]) -> list[FuncRow]:
    """The Funcs of several schedules, those with the largest share of any of them first."""
    tables = [{func.name: func.time_s for func in one.funcs} for one in schedules]
    shares: dict[str, float] = {}
    for one, table in zip(schedules, tables, strict=True):
        for name, time_s in table.items():
            shares[name] = max(shares.get(name, 0.0), time_s / one.call_s)
    shown = sorted((name for name in shares if shares[name] >= _SMALLEST_SHARE), key=lambda name: -shares[name])
    rows = [FuncRow(name, tuple(table.get(name) for table in tables)) for name in shown]
    if rest := shares.keys() - shown:
        rows.append(FuncRow(f"{len(rest)} others", tuple(sum(table.get(n, 0.0) for n in rest) for table in tables)))
    return rows


def func_tables(profiled: Sequence[ProfiledSchedule]) -> list[FuncTable]:
    """A table for each device: times of different devices are not compared."""
    tables = []
    for device in dict.fromkeys(one.device for one in profiled):
        results = {one.label: one.result for one in profiled if one.device == device}
        times = {label: result for label, result in results.items() if isinstance(result, FuncTimes)}
        failures = {label: result.message for label, result in results.items() if isinstance(result, MeasureFailure)}
        tables.append(FuncTable(device, times, failures, func_rows(list(times.values()))))
    return tables


def compare_funcs(plan: BenchPlan, progress: Progress) -> list[ProfiledSchedule]:
    """Build every schedule with Halide's profiler, check it against an independent one, and tell its Funcs' times.

    Raises:
        UsageError: the profiler says nothing of use on one of the devices.
        GeneratorError, ToolchainError, DeviceError, EmulatorError: as for `compare_schedules`.
    """
    check_profiler(plan.recipe.profile, plan.devices)
    answers = ask_schedules(plan, (PROFILE_FEATURE,), time_funcs, "profiling", progress)
    return [ProfiledSchedule(device, label, times) for device, label, times in answers]


def ask_schedules(
    plan: BenchPlan, features: Sequence[str], question: Question[T], what: str, progress: Progress
) -> list[tuple[str, str, T | MeasureFailure]]:
    """Build every schedule with features of the target, and ask its kernel something on each device.

    Args:
        what: is done, for people, such as 'profiling'.

    Returns:
        Device, schedule's label and answer; one that cannot be built has its failure.

    Raises:
        GeneratorError, ToolchainError, DeviceError, EmulatorError: as for `compare_schedules`.
    """
    recipe = replace(plan.recipe, profile=with_target_features(plan.recipe.profile, features))
    found: list[tuple[str, str, T | MeasureFailure]] = []
    with open_kernel_bench(replace(plan, recipe=recipe, needs_all=False), progress) as bench:
        for device in plan.devices:
            for symbol, schedule in zip(bench.built.symbols, plan.schedules, strict=True):
                progress(f"{what} {schedule.label} on {device.name}")
                message = bench.built.failures.get(symbol)
                answer = (
                    bench.ask(device, symbol, question)
                    if message is None
                    else MeasureFailure(symbol, device.name, MeasureFailureReason.HALIDE_ERROR, message, "")
                )
                found.append((device.name, schedule.label, answer))
    return found


def check_profiler(profile: TargetProfile, devices: Sequence[Device]) -> None:
    """Refuse what the profiler would be wrong about: it looks by this processor's clock at what this processor does.

    Raises:
        UsageError: a device is not a real one, or another processor does the work.
    """
    for device in devices:
        if device.clock is not Clock.WALL:
            raise UsageError(
                f"Halide's profiler needs a real device's clock, and {device.name} has {device.clock.words}.",
                next_step="Give a board or a phone with --device, or leave out --by-func.",
            )
    if profile.machine.gpu is not None:
        raise UsageError(
            f"Halide's profiler sees nothing of what a card does, so profile {profile.name} has no times of Funcs.",
            next_step="Use the card's own profiler, such as Nsight Compute, or leave out --by-func.",
        )
