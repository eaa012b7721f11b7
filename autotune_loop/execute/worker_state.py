"""What is open for a run on one machine: the generator, the caches, the devices."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from halide_autotune.autotune_loop.execute.device_session import DeviceSession
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.autotune_loop.specification.tuning_task import TuningTask
from halide_autotune.devices.device import Device
from halide_autotune.devices.local.cores import CoreTurns
from halide_autotune.devices.transport import Transport, close_all
from halide_autotune.targets.cuda.device_code import CardCheck
from halide_autotune.targets.cuda.ptxas import find_ptxas
from halide_autotune.targets.errors import DeviceError, ToolchainError
from halide_autotune.targets.generator.program import GeneratorProgram, open_generator
from halide_autotune.targets.generator.reference import GeneratorReference
from halide_autotune.targets.generator.run import AutoschedulerRequest
from halide_autotune.targets.halide_install import HalideInstall, find_halide_install
from halide_autotune.targets.pipeline.preparation import PipelinePreparation, build_preparation_plugin
from halide_autotune.targets.process.c_toolchain import CToolchain
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.process.pause import Pause
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.schedule.plugins import build_search_plugin
from halide_autotune.targets.toolchain.c_toolchain import open_toolchain
from halide_autotune.targets.toolchain.cpp_build import CppBuild
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

# From a device's name to the device and a function that makes its transport, not yet connected where it is remote.
FindDevice = Callable[[str], tuple[Device, Callable[[], Transport]]]


@dataclass(frozen=True)
class BuildHold:
    """The build cores, held by a task.

    Attributes:
        stop: ends it.
        pause: has its child stand still while somebody measures; None where that is on other cores.
    """

    stop: StopSignal
    pause: Pause | None = None


class WorkerState:
    """Everything is opened when it is first needed. Shared by the threads that work for the run.

    Args:
        drop_file: told the SHA-256 of an input file that no task needs any more.
    """

    def __init__(
        self, context: RunContext, find_device: FindDevice, drop_file: Callable[[str], None] = lambda sha256: None
    ) -> None:
        self.context = context
        self.drop_file = drop_file
        self.stop = StopSignal()
        self.halide: HalideInstall = find_halide_install()
        self.cache = ContentCache(context.workspace.cache_folder)
        self._find_device = find_device
        self._lock = threading.Lock()
        self._stop_lock = threading.Lock()
        self._turns = CoreTurns(context.workspace.lock_folder)
        self._programs: dict[tuple[Path, CppBuild], GeneratorProgram] = {}
        self._device_sessions: dict[str, DeviceSession] = {}
        self._closed = False

    def close(self) -> None:
        """Stop what is under way and close everything."""
        self.stop.set()
        with self._lock:
            self._closed = True
            programs, device_sessions = list(self._programs.values()), list(self._device_sessions.values())
        for program in programs:
            program.close()
        close_all([device_session.close for device_session in device_sessions])

    @property
    def compiler(self) -> HostCppCompiler:
        """The host's C++ compiler."""
        return HostCppCompiler(self.halide, self.cache, self.context.workspace.environment, self.stop)

    @property
    def toolchain(self) -> CToolchain:
        """The target's C compiler and linker."""
        context = self.context
        return open_toolchain(
            context.profile, context.workspace.cache_folder, context.workspace.ndk_root, context.hexagon_sdk
        )

    @property
    def card_check(self) -> CardCheck | None:
        """The check of kernels for a card; None where they run on a processor."""
        card = self.context.profile.machine.gpu
        return None if card is None else CardCheck(card, find_ptxas(self.context.workspace.environment))

    @cached_property
    def search_plugin(self) -> Path | None:
        """The plug-in that ends a generator right after its search; None on a machine without a C++ compiler."""
        # Without one a search is slower; everything else is the same.
        with contextlib.suppress(ToolchainError):
            return build_search_plugin(self.compiler)
        return None

    @cached_property
    def _preparation_plugin(self) -> Path | None:
        # Without a compiler, generators that schedule themselves or give no estimates cannot be tuned.
        with contextlib.suppress(ToolchainError):
            return build_preparation_plugin(self.compiler)
        return None

    def prepared(self, task: TuningTask, autoscheduler: AutoschedulerRequest) -> AutoschedulerRequest:
        """The autoscheduler, run on the pipeline without its own schedule and with the task's estimates."""
        plugin = self._preparation_plugin
        return autoscheduler if plugin is None else PipelinePreparation(plugin, task.estimates).before(autoscheduler)

    def program(self, reference: GeneratorReference) -> GeneratorProgram:
        """One of the run's generators, opened at first use; those of one file are one program."""
        with self._lock:
            key = (reference.file, reference.build)
            if key not in self._programs:
                plugins = [self.halide.plugin_path(self.context.profile.autoscheduler.name)]
                plugins += [plugin for plugin in (self.search_plugin, self._preparation_plugin) if plugin is not None]
                self._programs[key] = open_generator(
                    reference, self.halide, self.compiler, self.context.workspace.environment, plugins
                )
            return self._programs[key]

    def device_session(self, device_name: str) -> DeviceSession:
        """The run's session with a device; a new one is not open yet.

        Raises:
            DeviceError: there is no such device here, or the run has ended.
        """
        with self._lock:
            if self._closed:
                raise DeviceError(f"{device_name} cannot be used: the run has ended.")
            if device_name not in self._device_sessions:
                device, open_it = self._find_device(device_name)
                self._device_sessions[device_name] = DeviceSession(device, open_it, self.context.inputs)
            return self._device_sessions[device_name]

    def interrupt(self) -> None:
        """Kill what the tasks under way have started; tasks that start later are not affected."""
        with self._stop_lock:  # else a task may have a signal that another interrupt has just replaced
            interrupted = self.stop
            if not self._closed:
                self.stop = StopSignal()
        interrupted.set()

    @contextlib.contextmanager
    def building(self) -> Iterator[BuildHold]:
        """Hold the build cores, where building and measuring take turns."""
        stop = self.stop  # taken before the wait, so that an interrupt during it counts
        if not self.context.workspace.cores.take_turns:
            yield BuildHold(stop)
            return
        with self._turns.building(stop) as turn:
            yield BuildHold(stop, turn)

    @contextlib.contextmanager
    def measuring(self) -> Iterator[StopSignal]:
        """Hold the measuring cores, where building and measuring take turns; yields the task's stop signal."""
        stop = self.stop
        with self._turns.measuring(stop) if self.context.workspace.cores.take_turns else contextlib.nullcontext():
            yield stop
