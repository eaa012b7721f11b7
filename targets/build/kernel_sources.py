"""What kernels call beside Halide's runtime: sources compiled for the target, objects and static libraries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.targets.errors import KernelLinkError, ToolchainError
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.process.c_toolchain import CToolchain
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.toolchain.cpp_build import LINKED_SUFFIXES, CppBuild

_UNDEFINED = re.compile(r"undefined (?:symbol: |reference to `)([\w.]+)")


@dataclass(frozen=True)
class KernelSources:
    """What is linked with every kernel.

    Attributes:
        files: C and C++ sources, objects and static libraries.
        include_folders, definitions: of the sources.
    """

    files: tuple[Path, ...] = ()
    include_folders: tuple[Path, ...] = ()
    definitions: tuple[str, ...] = ()

    @classmethod
    def of(cls, *builds: CppBuild) -> KernelSources:
        """What the kernels of generators that are built like this call, each once."""
        return cls(
            _each(file for build in builds for file in build.kernel_sources),
            _each(folder for build in builds if build.kernel_sources for folder in build.include_folders),
            tuple(dict.fromkeys(text for build in builds if build.kernel_sources for text in build.definitions)),
        )

    @property
    def has_cpp(self) -> bool:
        """Whether the C++ library is linked."""
        return any(file.suffix not in (".c", *LINKED_SUFFIXES) for file in self.files)

    def objects(
        self, folder: Path, toolchain: CToolchain, halide: HalideInstall, stop: StopSignal | None
    ) -> list[Path]:
        """Compile the sources into a folder; return what is linked.

        They are compiled for each link: it takes less than a second, and headers are never out of date.

        Raises:
            ToolchainError: one does not compile, or the toolchain has no C++.
        """
        includes = [*self.include_folders, halide.include_dir]
        flags = [f"-D{definition}" for definition in self.definitions]
        found = []
        for position, file in enumerate(self.files):
            if file.suffix in LINKED_SUFFIXES:
                found.append(file)
                continue
            found.append(folder / f"kernel_source_{position}.o")
            compile_source = toolchain.compile_c if file.suffix == ".c" else toolchain.compile_cpp
            compile_source(file, found[-1], includes, flags, stop)
        return found


def undefined_symbols(log: str, defined_by_kernels: Sequence[str]) -> list[str]:
    """What a linker misses that is not of the kernels themselves."""
    of_kernels = {f"{name}_{part}" for name in defined_by_kernels for part in ("argv", "metadata")}
    return [symbol for symbol in dict.fromkeys(_UNDEFINED.findall(log)) if symbol not in of_kernels]


def missing_symbols(symbols: Sequence[str], kernels: tuple[str, ...], cause: ToolchainError) -> KernelLinkError:
    """The error of kernels that call what nothing defines."""
    return KernelLinkError(
        f"The kernels call {', '.join(symbols)}, which nothing that is linked with them defines.\n{cause.message}",
        next_step="Name the source or object that defines it with --kernel-source.",
        kernels=kernels,
    )


def _each(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(paths))
