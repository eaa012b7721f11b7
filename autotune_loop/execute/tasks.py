"""The functions that run on Dask workers: search, generate code, link, measure.

Each takes plain frozen values (`task_index` is a place in the run's tuning tasks), finds what the worker keeps open
through `current_run_worker`, and returns a typed result; expected failures are results too.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune_loop.candidate import (
    BuiltObject,
    Candidate,
    Origin,
    SearchedSchedule,
    SearchFailure,
    SearchPoint,
)
from autotune_loop.execute.run_worker import RunWorker, current_run_worker
from autotune_loop.execute.timing import ReferenceRun, Timing
from autotune_loop.schedule.mend_header import mend_header
from autotune_loop.store.featurization import read_featurization
from devices.health.probe import DeviceSense
from devices.timing.measure import device_failure
from devices.timing.measure_settings import MeasureSettings, Tolerance
from devices.timing.measurement import Measurement
from targets.build.executable import BuildTools, Executable, KernelObject, link_executable
from targets.cuda.device_code import run_checked_generator
from targets.errors import DeviceError, SdkError
from targets.generator.run import (
    EMITTED_SUFFIXES,
    AutoschedulerRequest,
    GeneratedFiles,
    GeneratorFailure,
    GeneratorFailureReason,
    GeneratorRequest,
    plain_folder,
)
from targets.process.limited_process import ProcessLimits
from targets.process.stop_signal import StopSignal
from targets.schedule.autoschedulers import profile_autoscheduler, reference_autoschedulers
from targets.schedule.header import read_schedule
from targets.schedule.plugins import ALL_AT_ROOT, schedule_autoscheduler, search_only
from weights.arithmetic import perturb_weights
from weights.network import Network
from weights.weights_file import read_weights, write_weights

_WITH_CODE = ("object", "schedule", "featurization")


@dataclass(frozen=True)
class BuiltReference:
    """The independent schedule that outputs are compared with.

    Attributes:
        autoscheduler: which one made it.
        ships: its schedule header can be shipped, once what Halide 21 leaves out of it is mended.
        position: its place among those that may.
    """

    autoscheduler: str
    kernel: KernelObject
    schedule_path: Path
    ships: bool
    position: int

    @property
    def is_plain(self) -> bool:
        """Whether it is in plain loops, which the other autoschedulers' are independent of."""
        return self.autoscheduler == ALL_AT_ROOT


def search(point: SearchPoint, task_index: int, folder: Path) -> SearchedSchedule | SearchFailure:
    """Sample one schedule; no code is generated for it."""
    worker = current_run_worker()
    with worker.building() as stop:
        generated = _run_search(worker, point, task_index, folder, "search", ("featurization",), stop)
    return _searched(worker, point, folder, generated, None)


def search_and_build(
    point: SearchPoint, task_index: int, folder: Path, symbol: str
) -> SearchedSchedule | SearchFailure:
    """Sample one schedule and generate its code at once, for a search that would be too dear to repeat."""
    worker = current_run_worker()
    with worker.building() as stop:
        generated = _run_search(worker, point, task_index, folder, symbol, _WITH_CODE, stop)
    built = None if isinstance(generated, GeneratorFailure) else _built(symbol, generated)
    return _searched(worker, point, folder, generated, built)


def _searched(
    worker: RunWorker,
    point: SearchPoint,
    folder: Path,
    generated: GeneratedFiles | GeneratorFailure,
    built: BuiltObject | None,
) -> SearchedSchedule | SearchFailure:
    if isinstance(generated, GeneratorFailure):
        shutil.rmtree(folder, ignore_errors=True)
        return SearchFailure(point, generated)
    path = generated.files["featurization"]
    sha256 = read_featurization(path, worker.context.network).schedule_sha256
    return SearchedSchedule(point, folder, path, sha256, generated.duration_s, built)


def build_object(candidate: Candidate, task_index: int, folder: Path) -> BuiltObject | GeneratorFailure:
    """Generate a candidate's code by repeating its search, and make sure that it is the same schedule."""
    worker = current_run_worker()
    with worker.building() as stop:
        generated = _run_search(worker, candidate.point, task_index, folder, candidate.symbol, _WITH_CODE, stop)
    if isinstance(generated, GeneratorFailure):
        shutil.rmtree(folder, ignore_errors=True)
        return generated
    again = read_featurization(generated.files["featurization"], worker.context.network).schedule_sha256
    if again != candidate.schedule_sha256:
        shutil.rmtree(folder, ignore_errors=True)
        message = "The search gave another schedule when it was repeated with the same seed."
        return GeneratorFailure(GeneratorFailureReason.FAILED, message, "", generated.duration_s)
    return _built(candidate.symbol, generated)


def has_hvx_floats(point: SearchPoint, task_index: int, folder: Path) -> bool | GeneratorFailure:
    """Compile one schedule for Hexagon; whether it has HVX's instructions for floats, or why it does not compile."""
    worker = current_run_worker()
    with worker.building() as stop:
        generated = _run_search(worker, point, task_index, folder, "floats_probe", ("object", "assembly"), stop)
    try:
        if isinstance(generated, GeneratorFailure):
            return generated
        assembly = generated.files["assembly"].read_text(encoding="utf-8", errors="replace")
        return re.search(r"\.(qf16|qf32|hf|sf)\b", assembly) is not None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _built(symbol: str, generated: GeneratedFiles) -> BuiltObject:
    return BuiltObject(symbol, generated.files["object"], generated.files["schedule"], generated.duration_s)


def _run_search(
    worker: RunWorker,
    point: SearchPoint,
    task_index: int,
    folder: Path,
    symbol: str,
    emit: tuple[str, ...],
    stop: StopSignal,
) -> GeneratedFiles | GeneratorFailure:
    folder.mkdir(parents=True, exist_ok=True)
    weights_path = point.weights_path
    if point.weights_noise > 0:
        weights_path = folder / "noisy.weights"
        noisy = perturb_weights(read_weights(point.weights_path), point.weights_noise, point.seed)
        write_weights(noisy, weights_path)
    limits = worker.context.limits
    time_s = limits.full_search_s if point.origin is Origin.FULL_BEAM else limits.search_s
    context = worker.context
    with plain_folder(weights_path.parent) as weights_folder, plain_folder(folder) as output_folder:
        parameters = {
            "beam_size": str(point.beam_size),
            "random_dropout": str(point.random_dropout),
            "random_dropout_seed": str(point.seed),
            "weights_path": str(weights_folder / weights_path.name),
        }
        if point.origin is Origin.RANDOM and context.network is Network.ANDERSON2021:
            # Dropout alone gives the same few schedules again and again, at several times the cost.
            parameters["randomize_tilings"] = "1"
        autoscheduler = profile_autoscheduler(worker.halide, context.profile, context.parallelism, parameters)
        if "object" not in emit and worker.search_plugin is not None:
            path = output_folder / (context.sample_file_name + EMITTED_SUFFIXES["featurization"])
            autoscheduler = search_only(autoscheduler, worker.search_plugin, path)
        return _generate(worker, autoscheduler, task_index, folder, symbol, emit, time_s, stop)


def _generate(
    worker: RunWorker,
    autoscheduler: AutoschedulerRequest,
    task_index: int,
    folder: Path,
    symbol: str,
    emit: tuple[str, ...],
    time_s: float,
    stop: StopSignal,
) -> GeneratedFiles | GeneratorFailure:
    context = worker.context
    task = context.tasks[task_index]
    request = GeneratorRequest(
        generator_name=task.generator_name,
        function_name=symbol,
        base_name=context.sample_file_name,
        output_folder=folder,
        emit=emit,
        halide_target=context.kernel_target,
        parameters=task.parameters,
        autoscheduler=autoscheduler,
    )
    limits = ProcessLimits(time_s, context.limits.memory_bytes, context.cores.build)
    return run_checked_generator(worker.program(task.reference), request, limits, worker.card_check, stop)


def build_reference(
    task_index: int, folder: Path, symbol: str, skip: int = 0
) -> BuiltReference | GeneratorFailure | None:
    """An independent schedule that ends: Mullapudi2016's, else Li2018's, else all at root.

    All at root is the first where vectors are in doubt.

    Args:
        skip: leaves out so many of these; None is returned when that leaves none.
    """
    worker = current_run_worker()
    context = worker.context
    choices = reference_autoschedulers(worker.halide, context.parallelism, context.profile, worker.compiler)
    first_failure: GeneratorFailure | None = None
    for position, choice in enumerate(choices):
        if position < skip:
            continue
        with worker.building() as stop:
            emit = ("object", "schedule")
            generated = _generate(worker, choice, task_index, folder, symbol, emit, context.limits.reference_s, stop)
        if isinstance(generated, GeneratedFiles):
            kernel = KernelObject(symbol, generated.files["object"])
            header = generated.files["schedule"]
            ships = _ships(worker, header)
            return BuiltReference(choice.name, kernel, header, ships, position)
        first_failure = first_failure or generated
        if generated.reason.concerns_every_candidate or generated.reason is GeneratorFailureReason.STOPPED:
            break
    return first_failure


def build_with_header(
    task_index: int, header_text: str, folder: Path, symbol: str
) -> BuiltObject | GeneratorFailure | SdkError:
    """Generate the code that a schedule header gives."""
    worker = current_run_worker()
    context = worker.context
    try:
        choice = schedule_autoscheduler(mend_header(header_text, context.sample_file_name), worker.compiler)
    except SdkError as error:
        return error
    with worker.building() as stop:
        emit = ("object", "schedule")
        generated = _generate(worker, choice, task_index, folder, symbol, emit, context.limits.reference_s, stop)
    return generated if isinstance(generated, GeneratorFailure) else _built(symbol, generated)


def _ships(worker: RunWorker, header: Path) -> bool:
    """Whether a schedule header may win: it compiles (a compiler must be there to tell), and on a GPU uses it."""
    if worker.context.profile.machine.gpu is not None and ".gpu_" not in header.read_text():
        return False
    try:
        with worker.building():
            schedule_autoscheduler(mend_header(read_schedule(header), worker.context.sample_file_name), worker.compiler)
    except SdkError:
        return False
    return True


def link(kernels: Sequence[KernelObject], output: Path) -> Executable | SdkError:
    """Link kernels, the runner and Halide's runtime into one executable."""
    worker = current_run_worker()
    try:
        with worker.building():
            tools = BuildTools(worker.halide, worker.cache, worker.toolchain)
            return link_executable(kernels, worker.context.profile.halide_target, tools, output)
    except SdkError as error:
        return error


def open_device(device_name: str) -> str | DeviceError:
    """Connect to a device, again after trouble; returns what identifies the time since it was switched on."""
    worker = current_run_worker()
    device_session = worker.device_session(device_name)
    try:
        device_session.open()
    except DeviceError as error:
        return error
    return device_session.epoch.partition("/")[0]


def prepare_reference(device_name: str, run: ReferenceRun, settings: MeasureSettings) -> Timing | None:
    """Run the reference once on a device; its outputs stay there for every candidate of the run.

    Returns:
        Its time, or why there are no outputs; None when there are outputs and timing it failed.
    """
    worker = current_run_worker()
    device_session = worker.device_session(device_name)
    try:
        device_session.open()
        with worker.measuring() as stop:
            started = time.monotonic()
            result = device_session.reference(run, settings, stop)
            held_s = time.monotonic() - started
    except DeviceError as error:
        return Timing(device_failure(run.symbol, device_name, error, under_way=False), 0.0)
    if result is None:
        return None
    timed = result if isinstance(result, Measurement) else None
    return Timing(result, held_s, device_session.epoch, timed, device_session.others(run))


def measure(
    device_name: str,
    executable: Executable,
    symbol: str,
    settings: MeasureSettings,
    reference: ReferenceRun | None,
    tolerance: Tolerance,
) -> Timing:
    """Check and time one kernel on a device."""
    worker = current_run_worker()
    with worker.measuring() as stop:
        return worker.device_session(device_name).measure(executable, symbol, settings, reference, tolerance, stop)


def sense(device_name: str) -> DeviceSense | None:
    """What the device's sensors say; None where there are none, or it does not answer."""
    return current_run_worker().device_session(device_name).sense()


def forget(device_name: str, executable: Executable) -> None:
    """Delete a measured batch's executable from the device."""
    current_run_worker().device_session(device_name).forget(executable)
