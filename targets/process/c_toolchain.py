"""A C compiler and linker for one target: what all of them have, whose compiler it may be."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from halide_autotune.targets.errors import ToolchainError
from halide_autotune.targets.process.compiler_run import compiler_environment, run_compiler
from halide_autotune.targets.process.stop_signal import StopSignal


class CToolchain(ABC):
    """Compiles and links C for one target. Every method raises ToolchainError if the tools are missing or fail.

    Attributes:
        cache_dir: the compiler's home folder.
    """

    cache_dir: Path
    _name: ClassVar[str]

    @property
    def shim_sources(self) -> tuple[Path, ...]:
        """C sources to link with Halide's runtime: functions that it calls and this toolchain's C library lacks."""
        return ()

    @property
    def is_prepared(self) -> bool:
        """Whether the first use is over, where it takes long."""
        return True

    def prepare(self, stop: StopSignal | None = None) -> None:  # noqa: B027 – few have anything to do
        """Do now what makes the first use slow. Returns early, without an error, once `stop` is set."""

    @abstractmethod
    def version(self) -> str:
        """Return the compiler's version."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Return everything of this toolchain that an object depends on, for cache keys."""

    @abstractmethod
    def describe(self) -> str:
        """Return which compiler it is, for which C library, and how it links: for people and records, without paths."""

    def compile_c(
        self,
        source: Path,
        object_path: Path,
        include_dirs: Sequence[Path],
        flags: Sequence[str] = (),
        stop: StopSignal | None = None,
    ) -> None:
        """Compile one C source into an object file; an error once `stop` is set."""
        includes = [f"-I{folder.absolute()}" for folder in include_dirs]
        files = ["-c", str(source.absolute()), "-o", str(object_path.absolute())]
        failure = f"{source.name} does not compile for {self._target}"
        self._run_to_end([*self._command(), *self._compile_flags(), *flags, *includes, *files], failure, stop)

    def compile_cpp(
        self,
        source: Path,
        object_path: Path,
        include_dirs: Sequence[Path],
        flags: Sequence[str] = (),
        stop: StopSignal | None = None,
    ) -> None:
        """Compile one C++ source into an object file, to be linked with `is_cpp`; an error once `stop` is set."""
        includes = [f"-I{folder.absolute()}" for folder in include_dirs]
        files = ["-c", str(source.absolute()), "-o", str(object_path.absolute())]
        failure = f"{source.name} does not compile for {self._target}"
        c_flags = [flag for flag in self._compile_flags() if not flag.startswith("-std=")]
        command = [*self._cpp_command(), "-std=c++17", *c_flags, *flags, *includes, *files]
        self._run_to_end(command, failure, stop)

    def link(
        self, objects: Sequence[Path], output: Path, stop: StopSignal | None = None, *, is_cpp: bool = False
    ) -> None:
        """Link objects and the system's libraries into an executable; an error once `stop` is set.

        Args:
            is_cpp: with the C++ library, statically.
        """
        files = [*(str(path.absolute()) for path in objects), "-o", str(output.absolute())]
        failure = f"{output.name} does not link for {self._target}"
        command = self._cpp_command() if is_cpp else self._command()
        self._run_to_end([*command, *self._link_arguments(files, output)], failure, stop)

    def _run_to_end(self, command: Sequence[str], failure: str, stop: StopSignal | None) -> None:
        self._run(command, failure, stop)
        if stop is not None and stop.is_set():
            raise ToolchainError(f"{failure}: it was stopped.")

    def _run(self, command: Sequence[str], failure: str, stop: StopSignal | None = None) -> None:
        compiler = f"{self._name} {self.version()}"
        # Not in the current folder: if zig lay below it, its cache for musl would depend on that.
        folder = self.cache_dir
        run_compiler(command, self._environment(), failure, compiler, folder=folder, stop=stop)

    @property
    @abstractmethod
    def _target(self) -> str: ...

    @abstractmethod
    def _command(self) -> list[str]:
        """The compiler, and the arguments that every use of it has."""

    def _cpp_command(self) -> list[str]:
        """The C++ compiler, likewise; it links its library statically.

        Raises:
            ToolchainError: the SDK compiles only C with this toolchain.
        """
        raise ToolchainError(
            f"C++ sources of kernels are not compiled with {self._name}.",
            next_step="Write the functions in C, or give --kernel-source an object that you compiled for the target.",
        )

    @abstractmethod
    def _compile_flags(self) -> Sequence[str]: ...

    @abstractmethod
    def _link_arguments(self, files: Sequence[str], output: Path) -> Sequence[str]:
        """What a link has beside the target: `files` name its objects and its output."""

    def _environment(self) -> Mapping[str, str]:
        return compiler_environment(self.cache_dir)
