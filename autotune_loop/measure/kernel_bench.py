"""Schedules of one generator in one executable, checked and timed on devices one at a time."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from halide_autotune.autotune_loop.execute.device_session import DeviceSession, Question, ReferenceRun
from halide_autotune.autotune_loop.measure.output_tolerance import (
    check_reference_failure,
    of_hand_written,
    pipeline_tolerance,
    tolerance_of,
)
from halide_autotune.autotune_loop.specification.workspace import Workspace
from halide_autotune.devices.device import Device
from halide_autotune.devices.local.cores import CoreTurns, plan_cores
from halide_autotune.devices.remote.open import device_transport
from halide_autotune.devices.timing.measure_settings import KernelInputs, MeasureSettings, Tolerance
from halide_autotune.devices.timing.measurement import MeasureFailure, MeasureFailureReason, Measurement
from halide_autotune.devices.transport import Transport
from halide_autotune.targets.build.artifacts import KernelRecipe, build_kernel
from halide_autotune.targets.build.executable import BuildTools, Executable, link_executable
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.run import GeneratorFailure
from halide_autotune.targets.process.scratch_folder import scratch_folder
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.schedule.autoschedulers import ScheduleChoice, reference_autoschedulers
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

_REFERENCE_LIMIT_S = 600.0
_REFERENCE_FILE = "reference.raw"
_TRIES = 3

Progress = Callable[[str], None]
T = TypeVar("T")


@dataclass(frozen=True)
class BenchPlan:
    """What is timed, where and how.

    Attributes:
        recipe: the generator; its own schedule is replaced by each of `schedules`.
        schedules: at least one.
        devices: at least one.
        needs_all: a schedule that cannot be built is an error; else it is left out.
        checks_outputs: compare them with an independent schedule's.
    """

    recipe: KernelRecipe
    schedules: Sequence[ScheduleChoice]
    devices: Sequence[Device]
    inputs: KernelInputs
    settings: MeasureSettings
    tools: BuildTools
    workspace: Workspace
    needs_all: bool = True
    checks_outputs: bool = True


@dataclass(frozen=True)
class BuiltKernels:
    """The schedules' kernels.

    Attributes:
        symbols: one for each schedule.
        failures: symbol → why its schedule cannot be built.
        reference: the autoscheduler whose schedule's outputs are compared with; None if there is none.
    """

    executable: Executable
    symbols: tuple[str, ...]
    failures: Mapping[str, str]
    tolerance: Tolerance
    reference: str | None


@contextlib.contextmanager
def open_kernel_bench(plan: BenchPlan, progress: Progress) -> Iterator[KernelBench]:
    """Build every schedule and an independent reference; a device is opened when it is first used.

    Raises:
        GeneratorError: a schedule cannot be built that the plan needs, or none can.
        ToolchainError: what is missing or broken.
    """
    usable = frozenset(os.sched_getaffinity(0))
    here = max((device.measuring_cores for device in plan.devices), default=0)
    cores = plan_cores(usable, min(here, len(usable)))
    turns = CoreTurns(plan.workspace.lock_folder) if cores.take_turns else None
    with scratch_folder("bench") as folder:
        with turns.building() if turns else contextlib.nullcontext():
            built = _build(plan, folder, progress)

        def open_transport(device: Device) -> Transport:
            here, work = plan.workspace, folder / "device"
            return device_transport(
                device, plan.recipe.profile, work, here.environment, cores.measure, here.connections, plan.tools.cache
            )

        with contextlib.closing(KernelBench(plan, built, open_transport, turns, progress)) as bench:
            yield bench


@dataclass
class KernelBench:
    """Times a plan's kernels; used by one thread."""

    plan: BenchPlan
    built: BuiltKernels
    open_transport: Callable[[Device], Transport]
    turns: CoreTurns | None
    progress: Progress

    def __post_init__(self) -> None:
        self._device_sessions: dict[str, DeviceSession] = {}
        self._references: dict[str, ReferenceRun | None] = {}

    def measure(
        self, device: Device, symbol: str, settings: MeasureSettings | None = None
    ) -> Measurement | MeasureFailure:
        """Check and time one kernel in a fresh process, again if the device fails; as the plan says without settings.

        Raises:
            DeviceError: the device cannot be used.
            UsageError: the kernels have no such arguments.
        """
        built, settings = self.built, settings or self.plan.settings

        def timed(session: DeviceSession, reference: ReferenceRun | None) -> Measurement | MeasureFailure:
            timing = session.measure(built.executable, symbol, settings, reference, built.tolerance, StopSignal())
            return timing.result

        return self._tried(device, timed)

    def ask(self, device: Device, symbol: str, question: Question[T]) -> T | MeasureFailure:
        """Check one kernel, and tell what is asked of its Funcs; the kernels are built with what that needs.

        Raises:
            DeviceError, UsageError: as for `measure`.
        """
        built, settings = self.built, self.plan.settings

        def asked(session: DeviceSession, reference: ReferenceRun | None) -> T | MeasureFailure:
            return session.ask(built.executable, symbol, question, settings, reference, built.tolerance, StopSignal())

        return self._tried(device, asked)

    def _tried(
        self, device: Device, run: Callable[[DeviceSession, ReferenceRun | None], T | MeasureFailure]
    ) -> T | MeasureFailure:
        """What is run on the device, once more if the device fails."""
        with self.turns.measuring() if self.turns else contextlib.nullcontext():
            device_session = self._device_session(device)
            reference = self._references[device.name]
            for _ in range(_TRIES):
                result = run(device_session, reference)
                if not (isinstance(result, MeasureFailure) and result.reason is MeasureFailureReason.DEVICE):
                    break
            return result

    def _device_session(self, device: Device) -> DeviceSession:
        if device.name not in self._device_sessions:
            device_session = DeviceSession(device, lambda: self.open_transport(device), self.plan.inputs)
            self._device_sessions[device.name] = device_session
            self.progress(f"opening {device.name}")
            device_session.open()
            self._references[device.name] = self._reference_run(device_session)
        return self._device_sessions[device.name]

    def _reference_run(self, device_session: DeviceSession) -> ReferenceRun | None:
        """Put the reference's outputs on the device; None if there are none."""
        if self.built.reference is None:
            return None
        self.progress(f"running the reference on {device_session.device.name}")
        executable = self.built.executable
        run = ReferenceRun(executable, executable.kernels[-1], _REFERENCE_FILE, _REFERENCE_LIMIT_S)
        failure = device_session.reference(run, self.plan.settings, StopSignal())
        if isinstance(failure, MeasureFailure):
            check_reference_failure(failure)
            return None
        return run

    def checks_outputs_on(self, device: Device) -> bool:
        """Whether outputs are compared with the reference's there."""
        return self._references.get(device.name) is not None

    def close(self) -> None:
        """Disconnect from the devices."""
        for device_session in self._device_sessions.values():
            device_session.close()


def _build(plan: BenchPlan, folder: Path, progress: Progress) -> BuiltKernels:
    recipe, tools = plan.recipe, plan.tools
    compiler = HostCppCompiler(tools.halide, tools.cache, plan.workspace.environment)
    tolerance = _tolerance(recipe, compiler, progress) if plan.checks_outputs else Tolerance()
    kernels, symbols, failures = [], [], {}
    for index, schedule in enumerate(plan.schedules):
        progress(f"building {schedule.label}")
        symbols.append(f"{recipe.function_name}_{index}")
        try:
            kernels.append(build_kernel(replace(recipe, schedule=schedule, function_name=symbols[-1]), folder))
        except GeneratorError as error:
            failures[symbols[-1]] = str(error)
            if plan.needs_all or len(failures) == len(plan.schedules):
                raise
    reference = None
    autoschedulers = reference_autoschedulers(tools.halide, plan.devices[0].threads, recipe.profile, compiler)
    for request in autoschedulers if plan.checks_outputs else ():
        progress(f"building the reference with {request.name}")
        choice = ScheduleChoice(request.name, request)
        with contextlib.suppress(GeneratorError):  # the next autoscheduler may schedule it
            symbol = f"{recipe.function_name}_reference"
            kernels.append(build_kernel(replace(recipe, schedule=choice, function_name=symbol), folder))
            reference = request.name
            break
    executable = link_executable(kernels, recipe.profile.halide_target, tools, folder / "bench")
    return BuiltKernels(executable, tuple(symbols), failures, of_hand_written(tolerance), reference)


def _tolerance(recipe: KernelRecipe, compiler: HostCppCompiler, progress: Progress) -> Tolerance:
    progress("analysing the pipeline")
    tolerance = pipeline_tolerance(recipe, compiler)
    if isinstance(tolerance, GeneratorFailure):
        progress(f"the pipeline cannot be analysed, so outputs may differ as those of floats may. {tolerance.message}")
        return tolerance_of(computes_with_floats=True)
    return tolerance
