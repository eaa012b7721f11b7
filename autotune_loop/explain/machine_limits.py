"""What a device can do at most, measured on it by two small kernels."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path

from halide_autotune.autotune_loop.explain.explained import MachineLimits
from halide_autotune.autotune_loop.measure.kernel_bench import BenchPlan, open_kernel_bench
from halide_autotune.devices.device import Device
from halide_autotune.devices.timing.measure_settings import KernelInputs
from halide_autotune.devices.timing.measurement import Measurement
from halide_autotune.targets.build.artifacts import KernelRecipe
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.program import open_generator
from halide_autotune.targets.generator.reference import parse_generator
from halide_autotune.targets.profile.profile import OWN_SCHEDULE
from halide_autotune.targets.schedule.autoschedulers import ScheduleChoice
from halide_autotune.targets.toolchain.cpp_build import CppBuild
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

LIMITS_GENERATOR = Path(__file__).parent / "limits_generator.cpp"
# As the generator has them.
_VECTORS, _FLOAT_BYTES = 10, 4


@dataclass(frozen=True)
class LimitKernel:
    """One of the two kernels.

    Attributes:
        generator: its name in `LIMITS_GENERATOR`.
        parameters: of the generator.
        work: what a call does: bytes, or operations.
    """

    generator: str
    parameters: tuple[str, ...]
    work: float


def limit_kernels(vector_bits: int) -> tuple[LimitKernel, LimitKernel]:
    """A copy of arrays of 64 MB, and multiplications with additions in vectors of that width."""
    values, tasks, steps, lanes = 1 << 24, 64, 1 << 16, max(1, vector_bits // 32)
    operations = 2.0 * tasks * steps * _VECTORS * lanes
    return (
        LimitKernel("copy_memory", (f"values={values}",), 2.0 * _FLOAT_BYTES * values),
        LimitKernel("multiply_and_add", (f"tasks={tasks}", f"steps={steps}", f"lanes={lanes}"), operations),
    )


def measure_limits(plan: BenchPlan, device: Device) -> MachineLimits | None:
    """What a device of a plan can do at most; None if it cannot run one of the kernels, as without floats.

    Raises:
        ToolchainError, DeviceError, EmulatorError: what is missing or broken.
    """
    copy, arithmetic = limit_kernels(plan.recipe.profile.machine.vector_bits)
    copied_s, computed_s = (_fastest_call_s(plan, kernel, device) for kernel in (copy, arithmetic))
    if copied_s is None or computed_s is None:
        return None
    return MachineLimits(copy.work / copied_s, arithmetic.work / computed_s)


def _fastest_call_s(plan: BenchPlan, kernel: LimitKernel, device: Device) -> float | None:
    tools, environment = plan.tools, plan.workspace.environment
    compiler = HostCppCompiler(tools.halide, tools.cache, environment)
    reference = parse_generator(f"{LIMITS_GENERATOR}:{kernel.generator}", kernel.parameters, CppBuild())
    choice = ScheduleChoice(OWN_SCHEDULE, None)
    try:
        with contextlib.closing(open_generator(reference, tools.halide, compiler, environment)) as program:
            recipe = KernelRecipe(
                program, kernel.generator, kernel.generator, reference.parameters, plan.recipe.profile, choice
            )
            limited = replace(
                plan, recipe=recipe, schedules=(choice,), devices=(device,), inputs=KernelInputs(), checks_outputs=False
            )
            with open_kernel_bench(limited, lambda text: None) as bench:
                measured = bench.measure(device, bench.built.symbols[0])
    except GeneratorError:
        return None
    return min(measured.repetitions_s) if isinstance(measured, Measurement) else None
