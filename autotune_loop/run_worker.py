"""What a Dask worker keeps open for a run: the generator, the caches, the device."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

from distributed import Worker, WorkerPlugin, get_worker

from autotune_loop.run_context import RunContext
from devices.core_turns import CoreTurns
from devices.measure import Session
from devices.measure_settings import Tolerance
from devices.open_device import open_transport
from targets.content_cache import ContentCache
from targets.errors import ToolchainError
from targets.generator_program import GeneratorProgram
from targets.halide_install import HalideInstall, find_halide_install
from targets.host_cpp_compiler import HostCppCompiler
from targets.open_generator import open_generator
from targets.search_plugin import build_search_plugin
from targets.stop_signal import StopSignal
from targets.zig_toolchain import ZigToolchain

PLUGIN_NAME = "sdk-run"


class RunWorker(WorkerPlugin):  # type: ignore[misc] # Dask has no type information
    """Opened lazily and closed with the worker; shared by the worker's threads."""

    name = PLUGIN_NAME

    def __init__(self, context: RunContext) -> None:
        self.context = context

    def setup(self, worker: Worker) -> None:
        """Called by Dask when the worker starts."""
        self.stop = StopSignal()
        self.halide: HalideInstall = find_halide_install()
        self.cache = ContentCache(self.context.cache_folder)
        self._lock = threading.Lock()
        self._turns = CoreTurns(self.context.lock_folder)
        self._program: GeneratorProgram | None = None
        self._session: Session | None = None
        self._search_plugin: Path | None = None

    def teardown(self, worker: Worker) -> None:
        """Called by Dask when the worker ends."""
        self.stop.set()
        if self._program is not None:
            self._program.close()
        if self._session is not None:
            self._session.transport.close()

    @property
    def compiler(self) -> HostCppCompiler:
        """The host's C++ compiler."""
        return HostCppCompiler(self.halide, self.cache, self.context.environment)

    @property
    def toolchain(self) -> ZigToolchain:
        """The target's C compiler and linker."""
        return ZigToolchain(self.context.profile.toolchain.triple, self.context.cache_folder / "zig")

    @property
    def search_plugin(self) -> Path | None:
        """What ends a generator right after its search; None on a machine without a C++ compiler."""
        self._open()
        return self._search_plugin

    @property
    def program(self) -> GeneratorProgram:
        """The generator, opened at first use."""
        return self._open()

    def _open(self) -> GeneratorProgram:
        with self._lock:
            if self._program is None:
                context = self.context
                # Without a C++ compiler a search is slower; everything else is the same.
                with contextlib.suppress(ToolchainError):
                    self._search_plugin = build_search_plugin(self.compiler)
                plugins = [self.halide.plugin_path(context.profile.autoscheduler.name)]
                if self._search_plugin is not None:
                    plugins.append(self._search_plugin)
                self._program = open_generator(
                    context.reference, self.halide, self.compiler, context.environment, plugins
                )
            return self._program

    def session(self, tolerance: Tolerance) -> Session:
        """The device, opened at first use, its input files pushed."""
        with self._lock:
            if self._session is None:
                context = self.context
                cores = context.cores.measure or None
                folder = context.work_folder / "device"
                transport = open_transport(context.device, context.profile, folder, context.environment, cores)
                self._session = Session(context.device, transport, context.inputs, tolerance)
                self._session.push_inputs()
            return Session(self._session.device, self._session.transport, self._session.inputs, tolerance)

    def interrupt(self) -> None:
        """Kill what the tasks under way have started; tasks that start later are not affected."""
        self.stop.set()
        self.stop = StopSignal()

    @contextlib.contextmanager
    def building(self) -> Iterator[StopSignal]:
        """Hold the build cores, where building and measuring take turns; yields the task's stop signal."""
        stop = self.stop  # taken before the wait, so that an interrupt during it counts
        with self._turns.building() if self.context.cores.take_turns else contextlib.nullcontext():
            yield stop

    @contextlib.contextmanager
    def measuring(self) -> Iterator[StopSignal]:
        """Hold the measuring cores, where building and measuring take turns; yields the task's stop signal."""
        stop = self.stop
        with self._turns.measuring() if self.context.cores.take_turns else contextlib.nullcontext():
            yield stop


def current_run_worker() -> RunWorker:
    """The plug-in of the worker that the calling task runs on."""
    worker = get_worker().plugins[PLUGIN_NAME]
    assert isinstance(worker, RunWorker)
    return worker
