"""Generators as programs: their protocol, and from what the user names to a program that runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from targets.errors import GeneratorError
from targets.generator.python_program import PythonGeneratorProgram
from targets.generator.reference import GeneratorKind, GeneratorReference
from targets.halide_install import HalideInstall
from targets.process.content_cache import file_sha256
from targets.process.limited_process import ProcessLimits, ProcessOutcome, run_limited
from targets.process.stop_signal import StopSignal
from targets.toolchain.host_cpp_compiler import HostCppCompiler


class GeneratorProgram(Protocol):
    """Something that takes the arguments of Halide's `generate_filter_main`.

    Implementations may be used from several threads at once; each run is a process of its own, so that a crash, a
    hang or a search that eats the memory ends nothing else.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The generators it registers, sorted."""
        ...

    @property
    def sha256(self) -> str:
        """Hash of what it was made from."""
        ...

    def run(self, arguments: Sequence[str], limits: ProcessLimits, stop: StopSignal | None = None) -> ProcessOutcome:
        """Run once with `arguments`; never raises for what the generator does."""
        ...

    def close(self) -> None:
        """Release its processes."""
        ...


_LISTING_LIMITS = ProcessLimits(time_s=30.0, memory_bytes=4 * 2**30)


class ExecutableGeneratorProgram:
    """Runs a generator executable that is linked with Halide's GenGen main.

    Args:
        source: the user's file that the SDK has built it from; None where the executable is the user's.

    Raises:
        GeneratorError: it does not start, or does not behave as a generator.
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

    def _list_names(self) -> tuple[str, ...]:
        # Called without a generator, GenGen prints its usage and then the names.
        try:
            outcome = run_limited([str(self._file)], _LISTING_LIMITS, environment=self._environment)
        except OSError as error:
            raise GeneratorError(
                f"{self._file} cannot be started: {error.strerror}.",
                next_step="Build it for this machine; a generator runs on the host, whatever the target.",
            ) from error
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
                next_step="Link it with libHalide_GenGen.a and use HALIDE_REGISTER_GENERATOR.",
            )
        return GeneratorError(
            f"{self._source} registers no generator: built with Halide's main, it {ended}",
            next_step="Put HALIDE_REGISTER_GENERATOR(Class, name) below the generator's class, and leave main() out.",
        )

    def run(self, arguments: Sequence[str], limits: ProcessLimits, stop: StopSignal | None = None) -> ProcessOutcome:
        """Run the executable with `arguments`."""
        return run_limited([str(self._file), *arguments], limits, environment=self._environment, stop=stop)

    def close(self) -> None:
        """Nothing is kept open."""


def open_generator(
    reference: GeneratorReference,
    halide: HalideInstall,
    compiler: HostCppCompiler,
    environment: Mapping[str, str],
    plugins: Sequence[Path] = (),
) -> GeneratorProgram:
    """Import, build or just start the generator, whichever its kind needs.

    Args:
        plugins: loaded once into a Python generator's process; the others load them at every run.

    Raises:
        GeneratorError: it does not compile, import or start.
        ToolchainError: a C++ source, and no compiler.
    """
    if reference.kind is GeneratorKind.PYTHON:
        return PythonGeneratorProgram(reference.file, environment, plugins)
    if reference.kind is GeneratorKind.CPP:
        built = compiler.build_generator(reference.file)
        return ExecutableGeneratorProgram(built, environment, halide.lib_dir, source=reference.file)
    return ExecutableGeneratorProgram(reference.file, environment, halide.lib_dir)
