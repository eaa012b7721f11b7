"""What a Dask worker keeps open for a run: the generator, the caches, the device."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

from distributed import Worker, WorkerPlugin, get_worker

from autotune_loop.run_context import RunContext
from autotune_loop.station import Station
from devices.core_turns import CoreTurns
from devices.device import Device
from devices.device_transport import device_transport
from devices.transport import Transport
from targets.c_toolchain import CToolchain
from targets.content_cache import ContentCache
from targets.errors import ToolchainError
from targets.generator_program import GeneratorProgram
from targets.halide_install import HalideInstall, find_halide_install
from targets.host_cpp_compiler import HostCppCompiler
from targets.open_generator import open_generator
from targets.open_toolchain import open_toolchain
from targets.search_plugin import build_search_plugin
from targets.stop_signal import StopSignal

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
        self._stations: dict[str, Station] = {}
        self._search_plugin: Path | None = None

    def teardown(self, worker: Worker) -> None:
        """Called by Dask when the worker ends."""
        self.stop.set()
        if self._program is not None:
            self._program.close()
        for station in self._stations.values():
            station.close()

    @property
    def compiler(self) -> HostCppCompiler:
        """The host's C++ compiler."""
        return HostCppCompiler(self.halide, self.cache, self.context.environment)

    @property
    def toolchain(self) -> CToolchain:
        """The target's C compiler and linker."""
        return open_toolchain(self.context.profile, self.context.cache_folder, self.context.ndk_root)

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

    def station(self, device_name: str) -> Station:
        """A device in this run's service, not yet opened at first."""
        with self._lock:
            if device_name not in self._stations:
                device = self.context.device(device_name)

                def open_it() -> Transport:
                    return self._open_transport(device)

                self._stations[device_name] = Station(device, open_it, self.context.inputs)
            return self._stations[device_name]

    def _open_transport(self, device: Device) -> Transport:
        context = self.context
        folder, cores = context.work_folder / "device", context.cores.measure
        return device_transport(
            device, context.profile, folder, context.environment, cores, context.connections, self.cache
        )

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
