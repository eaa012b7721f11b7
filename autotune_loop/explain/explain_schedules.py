"""Builds schedules of one generator for Halide's profiler and its tracing, runs both on devices, and explains them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from halide_autotune.autotune_loop.execute.device_session import Question
from halide_autotune.autotune_loop.explain.changes import changes
from halide_autotune.autotune_loop.explain.explained import (
    ExplainedFunc,
    ExplainedSchedule,
    Explanation,
)
from halide_autotune.autotune_loop.explain.limit import what_limits
from halide_autotune.autotune_loop.explain.machine_limits import measure_limits
from halide_autotune.autotune_loop.explain.pipeline_work import PipelineWork
from halide_autotune.autotune_loop.measure.func_comparison import ask_schedules
from halide_autotune.autotune_loop.measure.kernel_bench import BenchPlan, Progress, T
from halide_autotune.autotune_loop.measure.output_tolerance import recipe_shape
from halide_autotune.devices.device import Clock
from halide_autotune.devices.timing.func_counts import COUNT_FEATURES, KernelCounts, count_accesses
from halide_autotune.devices.timing.func_times import PROFILE_FEATURE, FuncTimes, time_funcs
from halide_autotune.devices.timing.measurement import MeasureFailure
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.generator.run import GeneratorFailure
from halide_autotune.targets.pipeline.shape import PipelineShape
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

_COUNT_LIMIT_S = 300.0


def explain_schedules(plan: BenchPlan, progress: Progress) -> list[Explanation]:
    """Explain the plan's last schedule, beside the others: on each of its devices.

    What has changed is told against the schedule before it. A device whose clock is not a real one gives no times;
    loads and stores are counted there, too.

    Raises:
        UsageError: a card computes, which neither the profiler nor the tracing sees.
        GeneratorError, ToolchainError, DeviceError, EmulatorError: as for `compare_schedules`.
    """
    if plan.recipe.profile.machine.gpu is not None:
        raise UsageError(
            f"Profile {plan.recipe.profile.name} computes on a card, where nothing can be counted or timed by Func.",
            next_step="Use the card's own profiler, such as Nsight Compute.",
        )
    timed = replace(plan, devices=[device for device in plan.devices if device.clock is Clock.WALL])
    times = _asked(timed, (PROFILE_FEATURE,), time_funcs, "profiling", progress)
    # Every load is a call of a function: a reference takes as long as what is asked.
    patient = replace(plan, settings=replace(plan.settings, run_limit_s=_COUNT_LIMIT_S), checks_outputs=False)
    counts = _asked(patient, COUNT_FEATURES, count_accesses, "counting loads and stores of", progress)
    shape = _shape(plan, progress)
    found = []
    for device in plan.devices:
        schedules = tuple(
            explained_schedule(label, times.get((device.name, label)), counts[device.name, label], shape)
            for label in (schedule.label for schedule in plan.schedules)
        )
        if device.clock is Clock.WALL:
            progress(f"measuring what {device.name} can do")
        limits = measure_limits(plan, device) if device.clock is Clock.WALL else None
        cache_bytes = plan.recipe.profile.machine.last_level_cache_bytes
        explanation = Explanation(device.name, device.clock.value, device.threads, schedules, limits, cache_bytes)
        found.append(
            replace(explanation, changes=changes(schedules[-2], schedules[-1]), limit=what_limits(explanation))
        )
    return found


def explained_schedule(
    label: str,
    times: FuncTimes | MeasureFailure | None,
    counts: KernelCounts | MeasureFailure,
    shape: PipelineShape | None,
) -> ExplainedSchedule:
    """What is known of a schedule, put together by Func.

    Args:
        times: None where the device's clock gives none.
        shape: of the pipeline; None if it cannot be described.
    """
    failures = {"its Funcs are not timed": times, "its loads and stores are not counted": counts}
    missing = tuple(f"{what}: {one.message}" for what, one in failures.items() if isinstance(one, MeasureFailure))
    timed = {func.name: func for func in times.funcs} if isinstance(times, FuncTimes) else {}
    counted = {func.name: func for func in counts.funcs} if isinstance(counts, KernelCounts) else {}
    work = None if shape is None else PipelineWork(shape, tuple(counted.values()))
    funcs = []
    for name in dict.fromkeys((*timed, *counted)):
        time, of_func = timed.get(name), counted.get(name)
        described = None if shape is None else shape.by_name.get(name)
        funcs.append(
            ExplainedFunc(
                name,
                described is not None and described.is_output,
                None if time is None else time.time_s,
                None if time is None else time.threads,
                of_func,
                None if work is None or of_func is None else work.needed_points(name),
                None if work is None or of_func is None else work.operations(of_func),
            )
        )
    slowest_first = sorted(funcs, key=lambda func: (func.time_s or 0.0, func.loaded_bytes), reverse=True)
    return ExplainedSchedule(
        label,
        times.call_s if isinstance(times, FuncTimes) else None,
        tuple(slowest_first),
        counts.argument_bytes if isinstance(counts, KernelCounts) else None,
        missing,
    )


def _asked(
    plan: BenchPlan, features: Sequence[str], question: Question[T], what: str, progress: Progress
) -> dict[tuple[str, str], T | MeasureFailure]:
    """The answers, by device and schedule's label."""
    if not plan.devices:
        return {}
    answers = ask_schedules(plan, features, question, what, progress)
    return {(device, label): answer for device, label, answer in answers}


def _shape(plan: BenchPlan, progress: Progress) -> PipelineShape | None:
    """None, and said, if the pipeline cannot be described."""
    compiler = HostCppCompiler(plan.tools.halide, plan.tools.cache, plan.workspace.environment)
    shape = recipe_shape(plan.recipe, compiler)
    if isinstance(shape, GeneratorFailure):
        progress(f"the pipeline cannot be described, so what is computed again is not told. {shape.message}")
        return None
    return shape
