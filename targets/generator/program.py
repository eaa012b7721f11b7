"""Generators as programs: the protocol, executables, and the program for what the user names."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from halide_autotune.targets.errors import GeneratorError, os_error_as
from halide_autotune.targets.generator.declared_parameter import DeclaredParameter, parameters_of_stub
from halide_autotune.targets.generator.preload import Preload
from halide_autotune.targets.generator.python_modules import SCHEDULE_MODULE_SUFFIX, modules_beside
from halide_autotune.targets.generator.python_program import PythonGeneratorProgram
from halide_autotune.targets.generator.reference import GeneratorKind, GeneratorReference
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.process.content_cache import file_sha256
from halide_autotune.targets.process.limited_process import ProcessLimits, ProcessOutcome, run_limited
from halide_autotune.targets.process.scratch_folder import scratch_folder
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

_LISTING_LIMITS = ProcessLimits(time_s=30.0, memory_bytes=4 * 2**30)


class GeneratorProgram(Protocol):
    """Takes the arguments of Halide's `generate_filter_main`.

    Several threads may use one program. Each run is a process of its own, so that a crash, a hang or a search that
    uses all memory ends nothing else.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The generators that it registers, sorted."""
        ...

    @property
    def sha256(self) -> str:
        """The hash of the file that it was made from."""
        ...

    def parameters(self, name: str) -> dict[str, DeclaredParameter]:
        """The parameters that a generator declares, those of its inputs and outputs left out.

        Raises:
            GeneratorError: it cannot tell.
        """
        ...

    def run(
        self,
        arguments: Sequence[str],
        limits: ProcessLimits,
        stop: StopSignal | None = None,
        preload: Preload | None = None,
    ) -> ProcessOutcome:
        """Run once with `arguments`; whatever the generator does, this does not raise.

        Args:
            preload: loaded first; the run is then in a process of its own.
        """
        ...

    def close(self) -> None:
        """End its processes."""
        ...


def open_generator(
    reference: GeneratorReference,
    halide: HalideInstall,
    compiler: HostCppCompiler,
    environment: Mapping[str, str],
    plugins: Sequence[Path] = (),
) -> GeneratorProgram:
    """Import a Python generator, build a C++ one, or start an executable.

    Args:
        plugins: loaded once into the process of a Python generator; the others load plug-ins at every run.

    Raises:
        GeneratorError: it does not compile, import or start.
        ToolchainError: it is a C++ source, and there is no compiler.
    """
    if reference.kind is GeneratorKind.PYTHON:
        return PythonGeneratorProgram(reference.file, environment, plugins, halide.lib_dir / "libHalide.so")
    if reference.kind is GeneratorKind.CPP:
        built = compiler.build_generator(reference.file, reference.build)
        return ExecutableGeneratorProgram(built, environment, halide.lib_dir, source=reference.file)
    return ExecutableGeneratorProgram(reference.file, environment, halide.lib_dir)


def generator_sha256(reference: GeneratorReference, compiler: HostCppCompiler) -> str:
    """The hash of what a generator's kernels are made from: its file, of a C++ one its other sources and headers.

    Of a Python one the modules in its folder that it imports, too. Schedules are no part of it: else a generator that
    imports what `sdk ship` writes for it would count as changed. What its kernels call and the data that it reads are.

    Raises:
        GeneratorError, ToolchainError: a C++ source does not compile, or there is no compiler.
        OSError: a file cannot be read.
    """
    if reference.kind is GeneratorKind.CPP:
        return compiler.sources_sha256(reference.file, reference.build)
    more = [file_sha256(file) for file in (*reference.build.kernel_sources, *reference.build.data_files)]
    if reference.kind is GeneratorKind.PYTHON:
        folder = reference.file.parent
        modules = [each for each in modules_beside(reference.file) if not each.name.endswith(SCHEDULE_MODULE_SUFFIX)]
        more += [f"{each.relative_to(folder)} {file_sha256(each)}" for each in modules]
    own = file_sha256(reference.file)
    return hashlib.sha256("\n".join([own, *more]).encode()).hexdigest() if more else own


class ExecutableGeneratorProgram:
    """Runs a generator executable that is linked with Halide's GenGen main.

    Args:
        source: the user's file that the SDK built it from; None if the executable is the user's.

    Raises:
        GeneratorError: it does not start, or is not a generator.
    """

    def __init__(
        self,
        file: Path,
        environment: Mapping[str, str],
        halide_library_folder: Path,
        source: Path | None = None,
    ) -> None:
        self._file = file
        self._source = source
        search_path = [environment.get("LD_LIBRARY_PATH", ""), str(halide_library_folder)]
        self._environment = {**environment, "LD_LIBRARY_PATH": ":".join(filter(None, search_path))}
        self.sha256 = file_sha256(file)
        self.names = self._list_names()

    def run(
        self,
        arguments: Sequence[str],
        limits: ProcessLimits,
        stop: StopSignal | None = None,
        preload: Preload | None = None,
    ) -> ProcessOutcome:
        """Run the executable with `arguments`; see `GeneratorProgram.run`."""
        environment = self._environment if preload is None else preload.environment(self._environment)
        return run_limited([str(self._file), *arguments], limits, environment=environment, stop=stop)

    def parameters(self, name: str) -> dict[str, DeclaredParameter]:
        """Read them from the generator's stub, which Halide prints without calling `generate`."""
        with scratch_folder("stub") as folder:
            stub = folder / f"{name}.stub.h"
            arguments = ["-g", name, "-o", str(folder), "-n", name, "-e", "cpp_stub"]
            outcome = self.run(arguments, _LISTING_LIMITS)
            if not stub.is_file():
                raise GeneratorError(
                    f"The parameters of generator {name} cannot be listed: it {outcome.describe()}.",
                    next_step="Register it with HALIDE_REGISTER_GENERATOR.",
                )
            return parameters_of_stub(stub.read_text(errors="replace"))

    def close(self) -> None:
        """Do nothing: no process is kept."""

    def _list_names(self) -> tuple[str, ...]:
        # Without arguments GenGen prints its usage, then the names.
        with os_error_as(
            GeneratorError,
            f"{self._file} cannot be started",
            next_step="Build it for this machine: a generator runs here, whatever the target.",
        ):
            outcome = self.run((), _LISTING_LIMITS)
        listing = re.search(r"available Generators are:\n((?:[ \t]+\S+\n?)+)", outcome.log)
        if listing is None:
            raise self._registers_none(outcome)
        return tuple(sorted(listing.group(1).split()))

    def _registers_none(self, outcome: ProcessOutcome) -> GeneratorError:
        shown = outcome.log.strip().splitlines()
        ended = outcome.describe() + (f" after printing {shown[-1]!r}." if shown else " and printed nothing.")
        if self._source is None:
            return GeneratorError(
                f"{self._file} is not a generator executable with registered generators: it {ended}",
                next_step="Use HALIDE_REGISTER_GENERATOR and link it with libHalide_GenGen.a.",
            )
        return GeneratorError(
            f"{self._source} registers no generator: built with Halide's main, it {ended}",
            next_step="Put HALIDE_REGISTER_GENERATOR(Class, name) below the generator's class, and remove main().",
        )
