"""What a run starts from: its record, its first weights and its measure settings."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

from halide_autotune.autotune_loop.events import Listener, Notice, RunLength, RunStarted
from halide_autotune.autotune_loop.specification.build_limits import BuildLimits
from halide_autotune.autotune_loop.specification.prepared_run import PreparedRun
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.autotune_loop.specification.tuning_task import published_names
from halide_autotune.autotune_loop.specification.workspace import Workspace
from halide_autotune.autotune_loop.store.run_record import RunFacts, RunRecord
from halide_autotune.devices.device import Clock
from halide_autotune.devices.local.cores import plan_cores
from halide_autotune.devices.timing.measure_settings import MeasureSettings
from halide_autotune.targets.build.simulated_clock_plugin import clock_model_sha256
from halide_autotune.targets.cuda.ptxas import INSTALL_HINT, find_ptxas
from halide_autotune.targets.errors import WeightsError
from halide_autotune.targets.generator.program import generator_sha256
from halide_autotune.targets.halide_install import find_halide_install
from halide_autotune.targets.process.c_toolchain import CToolchain
from halide_autotune.targets.process.content_cache import ContentCache, file_sha256
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.profile.host_probe import probe_host, usable_memory_bytes
from halide_autotune.targets.profile.profile import BASELINE_WEIGHTS
from halide_autotune.targets.toolchain.c_toolchain import fallback_notice, open_toolchain
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler
from halide_autotune.targets.values.raw_file import file_of
from halide_autotune.targets.values.records import plain
from halide_autotune.weights.baseline import baseline_weights
from halide_autotune.weights.network import Network
from halide_autotune.weights.weights_file import Weights, read_weights, weights_sha256

_MEMORY_SHARE = 0.8
_MEMORY_LIMIT_BYTES = 8 * 2**30


def start_weights(run: PreparedRun) -> Weights:
    """The weights asked for, else those that a resumed run started from, else the profile's, else Halide's own.

    Raises:
        WeightsError: they cannot be read, or belong to another autoscheduler's network.
    """
    autoscheduler = run.spec.profile.autoscheduler.name
    if run.weights is not None:
        path = run.weights
    elif run.resume and (started := run.folder / "samples" / "start.weights").is_file():
        path = started
    elif run.spec.profile.start_weights != BASELINE_WEIGHTS:
        path = Path(run.spec.profile.start_weights)
    else:
        return own_weights(run)
    weights = read_weights(path)
    if weights.network is not Network(autoscheduler):
        raise WeightsError(
            f"The weights {path} are for {weights.network.value}, but the profile {run.spec.profile.name} uses"
            f" {autoscheduler}.",
            next_step="To start from Halide's own weights, use --weights baseline.",
        )
    return weights


def own_weights(run: PreparedRun) -> Weights:
    """The weights inside the plug-in of the run's autoscheduler.

    Raises:
        WeightsError: it has none.
    """
    return baseline_weights(find_halide_install().plugin_path(run.spec.profile.autoscheduler.name))


def measure_settings(run: PreparedRun) -> MeasureSettings:
    """How kernels are timed on the run's device."""
    asked = run.options.measure
    return MeasureSettings.by_clock(run.clock, asked.precision, asked.max_time_s)


def run_record(run: PreparedRun, workspace: Workspace, weights: Weights) -> RunRecord:
    """The run's specification, and what it is made with.

    Raises:
        ToolchainError: Halide or the target's C toolchain is missing or broken.
        GeneratorError: a generator does not compile.
    """
    halide = find_halide_install()
    compiler = HostCppCompiler(halide, ContentCache(workspace.cache_folder), workspace.environment)
    tasks, profile = run.spec.tasks, run.spec.profile
    is_simulated = run.clock is Clock.SIMULATED
    facts = RunFacts(
        halide_version=halide.version,
        toolchain=_toolchain(run, workspace).describe(),
        plugin_sha256=halide.plugin_sha256(profile.autoscheduler.name),
        # A run can be resumed on other boards of its profile: their times are brought to one scale.
        device=", ".join(sorted({d.name if d.uses_host_cores else "devices of the inventory" for d in run.devices})),
        devices=tuple(device.name for device in run.devices),
        clock=run.clock.value,
        start_weights_sha256=weights_sha256(weights),
        generator_sha256=tuple(generator_sha256(task.reference, compiler) for task in tasks),
        clock_model=run.devices[0].clock_model or (f"sha256 {clock_model_sha256()}" if is_simulated else ""),
        processor=probe_host().cpu_model if run.runs_here and run.clock is Clock.WALL else "",
        incumbent_sha256={
            name: file_sha256(task.incumbent)
            for task, name in zip(tasks, published_names(tasks), strict=True)
            if task.incumbent is not None
        },
        input_sha256={name: file_sha256(file_of(path)) for name, path in run.spec.options.inputs.files.items()},
    )
    return RunRecord(run.spec, facts)


def prepare_toolchain(run: PreparedRun, workspace: Workspace, listen: Listener, stop: StopSignal) -> float:
    """Build the target's C library before its first use; return the seconds it took, which the budget excludes.

    Raises:
        ToolchainError: it cannot be built.
    """
    if notice := fallback_notice(run.spec.profile, workspace.ndk_root, runs_here=run.runs_here):
        listen(Notice(notice))
    if run.spec.profile.machine.gpu is not None and find_ptxas(workspace.environment) is None:
        notice = (
            "ptxas, NVIDIA's assembler, is not installed: kernels that need more registers or memory than the card has "
            f"fail when they run, not when they are built. {INSTALL_HINT}"
        )
        listen(Notice(notice))
    toolchain = _toolchain(run, workspace)
    if toolchain.is_prepared:
        return 0.0
    started_s = time.monotonic()
    listen(
        Notice(
            f"Building the C library of {toolchain.describe()}, once. "
            "This can take a few minutes, and does not count towards the budget."
        )
    )
    toolchain.prepare(stop)
    return time.monotonic() - started_s


def _toolchain(run: PreparedRun, workspace: Workspace) -> CToolchain:
    return open_toolchain(run.spec.profile, workspace.cache_folder, _usable_ndk(run, workspace), run.hexagon_sdk)


def _usable_ndk(run: PreparedRun, workspace: Workspace) -> Path | None:
    return None if run.runs_here else workspace.ndk_root


def run_started(run: PreparedRun, run_folder: Path) -> RunStarted:
    """The first event of a run."""
    return RunStarted(
        generator=run.generator_names,
        target=run.spec.profile.name,
        device=run.device_names,
        clock=run.clock.value,
        parallelism=run.spec.parallelism,
        run_folder=str(run_folder),
        length=RunLength(
            batch_size=run.options.search.batch_size,
            rounds=run.options.limits.rounds,
            tasks=len(run.spec.tasks),
            budget_s=run.options.limits.budget_s,
        ),
        resumed=run.resume,
        options=plain(run.options),
        parallel_unit="thread" if run.spec.profile.machine.gpu is None else "multiprocessor",
    )


def run_context(run: PreparedRun, workspace: Workspace, work_folder: Path) -> tuple[RunContext, int]:
    """What workers need to know, and how many candidates are built at once."""
    usable = frozenset(os.sched_getaffinity(0))
    measuring = max((device.measuring_cores for device in run.devices), default=0)
    cores = plan_cores(usable, min(measuring, len(usable)))
    build_slots = run.options.limits.build_jobs or len(cores.build)
    share_bytes = int(usable_memory_bytes() * _MEMORY_SHARE / build_slots)
    # A farm's workers limit the memory themselves.
    memory_bytes = _MEMORY_LIMIT_BYTES if run.farm is not None else min(_MEMORY_LIMIT_BYTES, share_bytes)
    limits = BuildLimits.of_run(run.options.limits, len(run.spec.tasks), memory_bytes)
    here = replace(workspace, cores=cores, work_folder=work_folder, ndk_root=_usable_ndk(run, workspace))
    context = RunContext(run.spec, run.devices, run.inputs, limits, here, run.only_records)
    return context, build_slots
