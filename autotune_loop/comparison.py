"""`sdk bench`: schedules of one generator checked and timed side by side, taking turns."""

from __future__ import annotations

import contextlib
import os
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from autotune_loop.featurization import Featurization, read_featurization
from autotune_loop.output_tolerance import output_tolerance
from autotune_loop.tune_request import Folders
from devices.core_plan import plan_cores
from devices.core_turns import CoreTurns
from devices.device import Device
from devices.measure import Session, measure_kernel, write_reference
from devices.measure_settings import KernelInputs, MeasureSettings
from devices.measurement import MeasureFailure, MeasureFailureReason, Measurement
from devices.open_device import open_transport
from targets.artifacts import BuildTools, KernelRecipe, build_kernel, emit_featurization, link_kernels
from targets.errors import GeneratorError, UsageError
from targets.executable import Executable
from targets.named_autoschedulers import profile_autoscheduler, reference_autoschedulers
from targets.schedule_choice import ScheduleChoice

_REFERENCE_LIMIT_S = 600.0
_REFERENCE_FILE = "reference.raw"

Progress = Callable[[str], None]


@dataclass(frozen=True)
class ComparedSchedule:
    """One schedule's part in a comparison.

    Attributes:
        label: as the user named it.
        turns: its measurements, one a turn; empty when it failed.
        failure: why it has no time.
        reference: the autoscheduler whose output it was compared with; None when there was none.
    """

    label: str
    turns: tuple[Measurement, ...]
    failure: MeasureFailure | None
    reference: str | None

    @property
    def median_ms(self) -> float | None:
        """Median over the turns."""
        return statistics.median(t.median_s for t in self.turns) * 1e3 if self.turns else None

    @property
    def minimum_ms(self) -> float | None:
        """The fastest single repetition."""
        return min(t.minimum_s for t in self.turns) * 1e3 if self.turns else None

    @property
    def spread_ms(self) -> float | None:
        """Robust standard deviation of the repetitions within a turn, median over the turns."""
        return statistics.median(t.spread_s for t in self.turns) * 1e3 if self.turns else None

    @property
    def repetitions(self) -> int:
        """All that were timed."""
        return sum(len(t.repetitions_s) for t in self.turns)


def compare_schedules(
    recipe: KernelRecipe,
    schedules: Sequence[ScheduleChoice],
    device: Device,
    inputs: KernelInputs,
    settings: MeasureSettings,
    turns: int,
    tools: BuildTools,
    folders: Folders,
    progress: Progress,
) -> list[ComparedSchedule]:
    """Build every schedule and an independent reference, then check and time them in turns.

    Raises:
        GeneratorError: a schedule cannot be built.
        ToolchainError, DeviceError, EmulatorError: what is missing or broken.
    """
    usable = frozenset(os.sched_getaffinity(0))
    cores = plan_cores(usable, min(device.threads, len(usable)) if device.uses_host_cores else 0)
    core_turns = CoreTurns(folders.locks) if cores.take_turns else None
    with tempfile.TemporaryDirectory(prefix="sdk-bench-") as folder:
        with core_turns.building() if core_turns else contextlib.nullcontext():
            progress("looking at the pipeline")
            tolerance = output_tolerance(_features(recipe, device, tools, Path(folder)))
            executable, symbols, reference = _build(recipe, schedules, device, tools, Path(folder), progress)
        transport = open_transport(
            device, recipe.profile, Path(folder) / "device", folders.environment, cores.measure or None
        )
        with (
            contextlib.closing(transport),
            core_turns.measuring() if core_turns else contextlib.nullcontext(),
        ):
            session = Session(device, transport, inputs, tolerance)
            session.push_inputs()
            transport.push(executable.path, executable.path.name)
            checked = _reference_outputs(session, executable, reference, progress)
            return _time(session, executable, symbols, schedules, settings, turns, checked, progress)


def _features(recipe: KernelRecipe, device: Device, tools: BuildTools, folder: Path) -> Featurization:
    """The pipeline's features, from a cheap search."""
    greedy = profile_autoscheduler(tools.halide, recipe.profile, device.threads, {"beam_size": "1"})
    choice = ScheduleChoice(greedy.name, greedy)
    return read_featurization(emit_featurization(replace(recipe, schedule=choice), folder))


def _build(
    recipe: KernelRecipe,
    schedules: Sequence[ScheduleChoice],
    device: Device,
    tools: BuildTools,
    folder: Path,
    progress: Progress,
) -> tuple[Executable, list[str], str | None]:
    """The executable, the symbols of the schedules in it, and the autoscheduler of the reference in it."""
    kernels, symbols = [], []
    for index, schedule in enumerate(schedules):
        progress(f"building {schedule.label}")
        symbols.append(f"{recipe.function_name}_{index}")
        kernels.append(build_kernel(replace(recipe, schedule=schedule, function_name=symbols[-1]), folder))
    reference = None
    for request in reference_autoschedulers(tools.halide, device.threads, recipe.profile.machine):
        progress(f"building the reference with {request.name}")
        choice = ScheduleChoice(request.name, request)
        with contextlib.suppress(GeneratorError):
            symbol = _reference_symbol(recipe.function_name)
            kernels.append(build_kernel(replace(recipe, schedule=choice, function_name=symbol), folder))
            reference = request.name
            break
    return link_kernels(kernels, recipe.profile, tools, folder / "bench"), symbols, reference


def _reference_symbol(function_name: str) -> str:
    return f"{function_name}_reference"


def _reference_outputs(
    session: Session, executable: Executable, reference: str | None, progress: Progress
) -> str | None:
    """The name of the autoscheduler whose outputs now lie on the device; None when there are none."""
    if reference is None:
        return None
    progress("running the reference")
    symbol = executable.kernels[-1]
    failure = write_reference(session, executable.path.name, symbol, _REFERENCE_FILE, _REFERENCE_LIMIT_S)
    if failure is not None and failure.reason is MeasureFailureReason.WRONG_ARGUMENTS:
        raise UsageError(f"The kernel cannot be called as asked. {failure.sentence}")
    return reference if failure is None else None


def _time(
    session: Session,
    executable: Executable,
    symbols: list[str],
    schedules: Sequence[ScheduleChoice],
    settings: MeasureSettings,
    turns: int,
    reference: str | None,
    progress: Progress,
) -> list[ComparedSchedule]:
    timed: dict[str, list[Measurement]] = {symbol: [] for symbol in symbols}
    failures: dict[str, MeasureFailure] = {}
    file = None if reference is None else _REFERENCE_FILE
    for turn in range(turns):
        for symbol in symbols:
            if symbol in failures:
                continue
            progress(f"timing, turn {turn + 1} of {turns}")
            result = measure_kernel(session, executable.path.name, symbol, settings, file)
            if isinstance(result, Measurement):
                timed[symbol].append(result)
            else:
                failures[symbol] = result
                timed[symbol].clear()
    return [
        ComparedSchedule(schedule.label, tuple(timed[symbol]), failures.get(symbol), reference)
        for symbol, schedule in zip(symbols, schedules, strict=True)
    ]
