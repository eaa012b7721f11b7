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
from autotune_loop.station import Station
from autotune_loop.timing import ReferenceRun
from autotune_loop.tune_request import Folders
from devices.core_plan import plan_cores
from devices.core_turns import CoreTurns
from devices.device import Device
from devices.device_transport import device_transport
from devices.measure_settings import KernelInputs, MeasureSettings, Tolerance
from devices.measurement import MeasureFailure, MeasureFailureReason, Measurement
from devices.remote_place import ConnectionSettings
from devices.transport import Transport
from targets.artifacts import BuildTools, KernelRecipe, build_kernel, emit_featurization, link_kernels
from targets.errors import DeviceError, GeneratorError, UsageError
from targets.executable import Executable
from targets.named_autoschedulers import profile_autoscheduler, reference_autoschedulers
from targets.schedule_choice import ScheduleChoice
from targets.stop_signal import StopSignal

_REFERENCE_LIMIT_S = 600.0
_REFERENCE_FILE = "reference.raw"
_TRIES = 3

Progress = Callable[[str], None]


@dataclass(frozen=True)
class ComparedSchedule:
    """One schedule's part in a comparison.

    Attributes:
        device: where it was timed.
        label: as the user named it.
        turns: its measurements, one a turn; empty when it failed.
        failure: why it has no time.
        reference: the autoscheduler whose output it was compared with; None when there was none.
        toolchain: what it was linked with, in words.
    """

    device: str
    label: str
    turns: tuple[Measurement, ...]
    failure: MeasureFailure | None
    reference: str | None
    toolchain: str = ""

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
    devices: Sequence[Device],
    inputs: KernelInputs,
    settings: MeasureSettings,
    turns: int,
    tools: BuildTools,
    folders: Folders,
    connections: ConnectionSettings | None,
    progress: Progress,
) -> list[ComparedSchedule]:
    """Build every schedule and an independent reference, then check and time them in turns on each device.

    Raises:
        GeneratorError: a schedule cannot be built.
        ToolchainError, DeviceError, EmulatorError: what is missing or broken.
    """
    usable = frozenset(os.sched_getaffinity(0))
    here = max((device.threads for device in devices if device.uses_host_cores), default=0)
    cores = plan_cores(usable, min(here, len(usable)))
    core_turns = CoreTurns(folders.locks) if cores.take_turns else None
    with tempfile.TemporaryDirectory(prefix="sdk-bench-") as folder:
        with core_turns.building() if core_turns else contextlib.nullcontext():
            progress("looking at the pipeline")
            tolerance = output_tolerance(_features(recipe, devices[0], tools, Path(folder)))
            executable, symbols, reference = _build(recipe, schedules, devices[0], tools, Path(folder), progress)
        compared = []
        for device in devices:

            def open_it(device: Device = device) -> Transport:
                scratch = Path(folder) / "device"
                return device_transport(
                    device, recipe.profile, scratch, folders.environment, cores.measure, connections, tools.cache
                )

            station = Station(device, open_it, inputs)
            with (
                contextlib.closing(station),
                core_turns.measuring() if core_turns else contextlib.nullcontext(),
            ):
                progress(f"opening {device.name}")
                station.open()
                run = _reference_run(station, executable, reference, settings, progress)
                kernels = _Kernels(executable, symbols, schedules, tolerance, reference if run else None, run)
                compared += _time(station, kernels, settings, turns, progress)
        toolchain = tools.toolchain.describe()
        return [replace(result, toolchain=toolchain) for result in compared]


@dataclass(frozen=True)
class _Kernels:
    """What is timed on every device."""

    executable: Executable
    symbols: list[str]
    schedules: Sequence[ScheduleChoice]
    tolerance: Tolerance
    reference_name: str | None
    reference: ReferenceRun | None


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


def _reference_run(
    station: Station, executable: Executable, reference: str | None, settings: MeasureSettings, progress: Progress
) -> ReferenceRun | None:
    """Put the reference's outputs on the device; None when there are none."""
    if reference is None:
        return None
    progress(f"running the reference on {station.device.name}")
    run = ReferenceRun(executable, executable.kernels[-1], _REFERENCE_FILE, _REFERENCE_LIMIT_S)
    failure = station.reference(run, settings, StopSignal())
    if isinstance(failure, MeasureFailure):
        if failure.reason is MeasureFailureReason.WRONG_ARGUMENTS:
            raise UsageError(f"The kernel cannot be called as asked. {failure.sentence}")
        if failure.reason is MeasureFailureReason.DEVICE:
            raise DeviceError(failure.sentence)
        return None
    return run


def _time(
    station: Station, kernels: _Kernels, settings: MeasureSettings, turns: int, progress: Progress
) -> list[ComparedSchedule]:
    timed: dict[str, list[Measurement]] = {symbol: [] for symbol in kernels.symbols}
    failures: dict[str, MeasureFailure] = {}
    for turn in range(turns):
        for symbol in kernels.symbols:
            if symbol in failures:
                continue
            progress(f"timing on {station.device.name}, turn {turn + 1} of {turns}")
            result = _measure(station, kernels, symbol, settings)
            if isinstance(result, Measurement):
                timed[symbol].append(result)
            else:
                failures[symbol] = result
                timed[symbol].clear()
    return [
        ComparedSchedule(
            station.device.name, schedule.label, tuple(timed[symbol]), failures.get(symbol), kernels.reference_name
        )
        for symbol, schedule in zip(kernels.symbols, kernels.schedules, strict=True)
    ]


def _measure(
    station: Station, kernels: _Kernels, symbol: str, settings: MeasureSettings
) -> Measurement | MeasureFailure:
    """A device's trouble is given a few chances to pass."""
    for _ in range(_TRIES):
        timing = station.measure(
            kernels.executable, symbol, settings, kernels.reference, kernels.tolerance, StopSignal()
        )
        result = timing.result
        if isinstance(result, Measurement) or result.reason is not MeasureFailureReason.DEVICE:
            break
    return result
