"""What a run starts from: its record, its first weights, how it measures."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Sequence
from pathlib import Path

from autotune_loop.events import Listener, Notice, RunStarted
from autotune_loop.specification.run_context import BuildLimits, RunContext
from autotune_loop.specification.tune_request import Folders, TuneRequest
from autotune_loop.specification.tuning_task import TuningTask, generator_names, published_names, sample_file_name
from autotune_loop.store.run_record import RunRecord
from devices.device import Clock
from devices.local.cores import plan_cores
from devices.timing.measure_settings import MeasureSettings
from targets.build.simulated_clock_plugin import clock_model_sha256
from targets.cuda.ptxas import INSTALL_HINT, find_ptxas
from targets.errors import WeightsError
from targets.halide_install import find_halide_install
from targets.process.content_cache import file_sha256
from targets.process.stop_signal import StopSignal
from targets.profile.host_probe import probe_host, usable_memory_bytes
from targets.profile.profile import BASELINE_WEIGHTS
from targets.toolchain.c_toolchain import CToolchain, fallback_notice, open_toolchain
from weights.baseline import baseline_weights
from weights.network import Network
from weights.weights_file import Weights, read_weights, weights_sha256

# Emulated calls are slow and their clock is coarse: fewer of them, for longer.
_EMULATED_TIME_FACTOR = 2.0
_EMULATED_MIN_REPETITIONS = 3
_RUN_LIMIT_S = 60.0
# The simulation takes several times as long as the emulation.
_SIMULATED_RUN_LIMIT_S = 180.0
# Shares of a time budget.
_SEARCH_BUDGET_SHARE = 0.25
_SHORTEST_SEARCH_LIMIT_S = 10.0
_FULL_SEARCH_BUDGET_SHARE = 0.2
_REFERENCE_BUDGET_SHARE = 0.5
_MEMORY_SHARE = 0.8
_MEMORY_LIMIT_BYTES = 8 * 2**30


def start_weights(request: TuneRequest) -> Weights:
    """The weights asked for, else those that a resumed run started from, else the profile's, else Halide's own.

    Raises:
        WeightsError: they cannot be read, or belong to another autoscheduler's network.
    """
    autoscheduler = request.profile.autoscheduler.name
    if request.weights is not None:
        weights = read_weights(request.weights)
    elif request.resume and (started := request.run_folder / "samples" / "start.weights").is_file():
        weights = read_weights(started)
    elif request.profile.start_weights != BASELINE_WEIGHTS:
        weights = read_weights(Path(request.profile.start_weights))
    else:
        weights = own_weights(request)
    if weights.network is not Network(autoscheduler):
        raise WeightsError(
            f"The weights are for {weights.network.value}, but profile {request.profile.name} uses {autoscheduler}.",
            next_step="Leave --weights out to start from Halide's own.",
        )
    return weights


def own_weights(request: TuneRequest) -> Weights:
    """Those inside the plug-in of the run's autoscheduler.

    Raises:
        WeightsError: there are none.
    """
    return baseline_weights(find_halide_install().plugin_path(request.profile.autoscheduler.name))


def measure_settings(request: TuneRequest) -> MeasureSettings:
    """How kernels are timed on the run's device."""
    if request.clock is Clock.SIMULATED:
        return MeasureSettings(run_limit_s=_SIMULATED_RUN_LIMIT_S)
    if request.clock is Clock.EMULATED:
        return MeasureSettings(
            precision=request.precision,
            max_time_s=request.max_time_s * _EMULATED_TIME_FACTOR,
            min_repetitions=_EMULATED_MIN_REPETITIONS,
            run_limit_s=_RUN_LIMIT_S,
        )
    return MeasureSettings(precision=request.precision, max_time_s=request.max_time_s, run_limit_s=_RUN_LIMIT_S)


def run_record(request: TuneRequest, folders: Folders, weights: Weights) -> RunRecord:
    """What must agree when the run is resumed, and what it was asked beside.

    Raises:
        ToolchainError: Halide or the target's C toolchain is missing or broken.
    """
    halide = find_halide_install()
    profile = request.profile
    identity = {
        **_tasks_identity(request.tasks),
        "profile": profile.name,
        "halide_target": profile.halide_target,
        "halide_version": halide.version,
        "toolchain": _toolchain(request, folders).describe(),
        "autoscheduler": profile.autoscheduler.name,
        "autoscheduler_parameters": json.dumps(dict(profile.autoscheduler.parameters)),
        "plugin_sha256": halide.plugin_sha256(profile.autoscheduler.name),
        "parallelism": str(request.parallelism),
        "device": _device_identity(request),
        "clock": request.clock.value,
        **_clock_model(request),
        "start_weights_sha256": weights_sha256(weights),
        "seed": str(request.sampling.seed),
        "input_seed": str(request.inputs.seed),
        "input_sizes": json.dumps(dict(request.inputs.sizes)),
        "input_scalars": json.dumps(dict(request.inputs.scalars)),
        "input_files": json.dumps({name: file_sha256(path) for name, path in request.inputs.files.items()}),
        "loss": request.learning.loss,
    }
    if profile.machine.gpu is not None:
        identity["card"] = profile.machine.gpu.name
    settings = {
        **_tasks_settings(request.tasks),
        "objective": request.objective.describe(),
        "objective_options": request.objective.to_json(),
        "play_off_turns": str(request.play_off_turns),
        "machine": json.dumps(profile.to_dict()["machine"]),
        "processor": probe_host().cpu_model if request.runs_here and request.clock is Clock.WALL else "",
        "devices": request.device_names,
        "batch_size": str(request.sampling.batch_size),
        "rounds": str(request.rounds),
        "budget_s": str(request.budget_s),
        "pool_factor": str(request.sampling.pool_factor),
        "random_share": str(request.sampling.random_share),
        "diversity": str(request.sampling.diversity),
        "epochs": str(request.learning.epochs),
        "learning_rate": str(request.learning.learning_rate),
        "held_out_share": str(request.learning.held_out_share),
        "precision": str(request.precision),
        "max_time_s": str(request.max_time_s),
    }
    return RunRecord(identity, settings)


def _clock_model(request: TuneRequest) -> dict[str, str]:
    """What simulated times come from, QEMU's model or another simulator; or whose cycles they are."""
    model = request.devices[0].clock_model
    if model is not None:
        return {"clock_model": model}
    return {"clock_model_sha256": clock_model_sha256()} if request.clock is Clock.SIMULATED else {}


def _tasks_identity(tasks: Sequence[TuningTask]) -> dict[str, str]:
    """Of one generator as flat keys; of several, a list beside them."""
    first = tasks[0].reference
    identity = {
        "generator": generator_names(tasks),
        "generator_kind": first.kind.value,
        "generator_sha256": file_sha256(first.file),
        "function_name": sample_file_name(tasks),
        "argsets": json.dumps([dict(task.parameters) for task in tasks]),
    }
    if len({task.function_name for task in tasks}) > 1:
        identity["tasks"] = json.dumps(
            [
                {
                    "name": name,
                    "generator": task.generator_name,
                    "generator_kind": task.reference.kind.value,
                    "generator_sha256": file_sha256(task.reference.file),
                    "function_name": task.function_name,
                    "parameters": dict(task.parameters),
                }
                for task, name in zip(tasks, published_names(tasks), strict=True)
            ]
        )
    return identity


def _tasks_settings(tasks: Sequence[TuningTask]) -> dict[str, str]:
    settings = {"generator_file": str(tasks[0].reference.file)}
    if len({task.function_name for task in tasks}) > 1:
        settings["generator_files"] = json.dumps([str(task.reference.file) for task in tasks])
    incumbents = {
        name: file_sha256(task.incumbent)
        for task, name in zip(tasks, published_names(tasks), strict=True)
        if task.incumbent is not None
    }
    if incumbents:
        settings["incumbents_sha256"] = json.dumps(incumbents)
    return settings


def toolchain_notice(request: TuneRequest, folders: Folders) -> str:
    """A message about a C library that is not the device's own; empty where there is nothing to say."""
    return fallback_notice(request.profile, folders.ndk_root, runs_here=request.runs_here)


def assembler_notice(request: TuneRequest, folders: Folders) -> str:
    """A message where kernels for a card cannot be looked at before they run; empty where there is nothing to say."""
    if request.profile.machine.gpu is None or find_ptxas(folders.environment) is not None:
        return ""
    return (
        "NVIDIA's assembler ptxas is not there: schedules whose kernels need more registers or memory than the card "
        f"has fail on it, not before. {INSTALL_HINT}"
    )


def prepare_toolchain(request: TuneRequest, folders: Folders, listen: Listener, stop: StopSignal) -> float:
    """Build the target's C library before its first use; returns the seconds that took, which are not the run's.

    Raises:
        ToolchainError: it cannot be built.
    """
    toolchain = _toolchain(request, folders)
    if toolchain.is_prepared:
        return 0.0
    started_s = time.monotonic()
    listen(
        Notice(
            f"This is the first use of {toolchain.describe()}: its C library is built, once. "
            "That may take some minutes; the budget begins after it."
        )
    )
    toolchain.prepare(stop)
    return time.monotonic() - started_s


def _toolchain(request: TuneRequest, folders: Folders) -> CToolchain:
    return open_toolchain(request.profile, folders.cache, _usable_ndk(request, folders), request.hexagon_sdk)


def _usable_ndk(request: TuneRequest, folders: Folders) -> Path | None:
    return None if request.runs_here else folders.ndk_root


def _device_identity(request: TuneRequest) -> str:
    """A run may go on with other boards of its profile: their times are brought to one scale."""
    kinds = {device.name if device.uses_host_cores else "devices of the inventory" for device in request.devices}
    return ", ".join(sorted(kinds))


def run_started(request: TuneRequest, run_folder: Path) -> RunStarted:
    """The first event of a run."""
    return RunStarted(
        generator=request.generator_names,
        target=request.profile.name,
        device=request.device_names,
        clock=request.clock.value,
        parallelism=request.parallelism,
        run_folder=str(run_folder),
        batch_size=request.sampling.batch_size,
        rounds=request.rounds,
        tasks=len(request.tasks),
        budget_s=request.budget_s,
        resumed=request.resume,
        parallel_unit="thread" if request.profile.machine.gpu is None else "multiprocessor",
    )


def run_context(request: TuneRequest, folders: Folders, work_folder: Path) -> tuple[RunContext, int]:
    """What workers need to know, and how many candidates are built at once."""
    usable = frozenset(os.sched_getaffinity(0))
    here = max((device.measuring_cores for device in request.devices), default=0)
    cores = plan_cores(usable, min(here, len(usable)))
    build_slots = request.build_jobs or len(cores.build)
    share_bytes = int(usable_memory_bytes() * _MEMORY_SHARE / build_slots)
    # A farm's workers know their own memory.
    limits = _limits(request, share_bytes if request.farm is None else _MEMORY_LIMIT_BYTES)
    context = RunContext(
        tasks=request.tasks,
        profile=request.profile,
        parallelism=request.parallelism,
        devices=request.devices,
        inputs=request.inputs,
        connections=request.connections,
        cores=cores,
        limits=limits,
        cache_folder=folders.cache,
        work_folder=work_folder,
        lock_folder=folders.locks,
        environment=folders.environment,
        ndk_root=_usable_ndk(request, folders),
    )
    return context, build_slots


def _limits(request: TuneRequest, memory_share_bytes: int) -> BuildLimits:
    """With a time budget nothing that the run waits for may take more than its share of its task's."""
    budget_s = math.inf if request.budget_s is None else request.budget_s / len(request.tasks)
    standard = BuildLimits()
    full_s = request.full_search_limit_s
    return BuildLimits(
        search_s=min(request.search_limit_s, max(_SHORTEST_SEARCH_LIMIT_S, budget_s * _SEARCH_BUDGET_SHARE)),
        full_search_s=min(standard.full_search_s, budget_s * _FULL_SEARCH_BUDGET_SHARE) if full_s is None else full_s,
        reference_s=min(standard.reference_s, budget_s * _REFERENCE_BUDGET_SHARE),
        reference_run_s=min(standard.reference_run_s, budget_s * _REFERENCE_BUDGET_SHARE),
        memory_bytes=request.memory_limit_bytes or min(_MEMORY_LIMIT_BYTES, memory_share_bytes),
    )
