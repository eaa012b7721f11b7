"""The protocol of a target's C compiler and linker."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from targets.process.stop_signal import StopSignal


class CToolchain(Protocol):
    """Compiles and links C for one target. Every method raises ToolchainError where the tools are missing or fail."""

    @property
    def shim_sources(self) -> tuple[Path, ...]:
        """C sources to be linked beside Halide's runtime: what it calls and this toolchain's C library lacks."""
        ...

    @property
    def is_prepared(self) -> bool:
        """False before the first use, where that takes long."""
        ...

    def prepare(self, stop: StopSignal | None = None) -> None:
        """Do what would make the first use take long; returns early, without an error, once `stop` is set."""
        ...

    def version(self) -> str:
        """The compiler's own version."""
        ...

    def fingerprint(self) -> str:
        """Everything of this toolchain that an object depends on, for cache keys."""
        ...

    def describe(self) -> str:
        """For people and records: which compiler, for which C library, linked how. No path of this machine."""
        ...

    def compile_c(
        self, source: Path, object_path: Path, include_dirs: Sequence[Path], flags: Sequence[str] = ()
    ) -> None:
        """Compile one C source into an object file."""
        ...

    def link(self, objects: Sequence[Path], output: Path) -> None:
        """Link objects and the system's libraries into an executable."""
        ...
