"""Qualcomm's compiler and linker: for a Hexagon without a system, as its simulator is, and for a device's DSP."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from targets.errors import ToolchainError
from targets.hexagon.sdk import HEXAGON_SDK_VARIABLE, HexagonSdk
from targets.process.compiler_run import run_compiler
from targets.process.content_cache import file_sha256
from targets.process.limited_process import ProcessLimits, run_limited
from targets.process.stop_signal import StopSignal

_VERSION_LIMITS = ProcessLimits(time_s=60.0, memory_bytes=4 * 2**30)
# As Halide builds its own program for the simulator (src/runtime/hexagon_remote/Makefile): no data near a pointer. No
# -mhvx: the compiler would make vectors of the runner's loops, and the vector unit is a kernel's, which locks it first.
_TARGET_FLAGS = ("-G0",)
_COMPILE_FLAGS = ("-std=c11", "-O2", "-g0")
_LINK_FLAGS = ("-O2", "-s")
# A device's DSP loads a shared object, as the SDK's own build links one: its libraries' position-independent variants,
# its own symbols bound at once, and memory from the heap of the DSP's process.
_SHARED_COMPILE_FLAGS = ("-std=gnu11", "-fPIC")  # headers of some releases have assembly by its short name
_WRAPPED = ("malloc", "calloc", "free", "realloc", "memalign")
_SHARED_LINK_FLAGS = ("-fPIC", "-shared", "-Wl,-Bsymbolic", *(f"-Wl,--wrap={name}" for name in _WRAPPED))
_SHARED_LIBRARIES = ("-lc",)
_HEADER_FOLDERS = ("incs", "incs/stddef")
_HEADERS = ("incs/HAP_perf.h", "incs/HAP_power.h")
# hexagon_sim_read_pcycles and the vector unit are in libhexagon. The rest of a standalone program comes by itself.
_LIBRARIES = ("-lhexagon", "-lm")


@dataclass(frozen=True)
class HexagonToolchain:
    """An SDK's hexagon-clang for one DSP version.

    Attributes:
        dsp_version: such as 'v66'.
        for_devices: links shared objects for QuRT, the system of devices' DSPs; else programs for no system.
        cache_dir: what the compiler sees as its home folder.
    """

    sdk: HexagonSdk
    dsp_version: str
    cache_dir: Path
    for_devices: bool = False

    @property
    def shim_sources(self) -> tuple[Path, ...]:
        """What Halide's runtime and the runner need beside the system that there is, or in place of one."""
        standalone = ("memory_shims.c", "standalone_shims.c")
        of_system = ("qurt_shims.c",) if self.for_devices else standalone
        return tuple(Path(__file__).parent / name for name in ("shims.c", *of_system))

    @property
    def is_prepared(self) -> bool:
        """True: an SDK comes with its libraries."""
        return True

    def prepare(self, stop: StopSignal | None = None) -> None:
        """Nothing."""

    def version(self) -> str:
        """The version of the SDK's tools, once their compiler has been seen to run.

        Raises:
            ToolchainError: the compiler cannot be run, or the SDK lacks what programs for the DSP are made with.
        """
        self.sdk.check_dsp_version(self.dsp_version)
        if self.for_devices:
            self._check_parts()
        compiler_words(self.sdk.compiler)
        return self.sdk.tools_version

    def fingerprint(self) -> str:
        """Everything of this toolchain that an object depends on, for cache keys.

        Raises:
            ToolchainError: as `version`.
        """
        version = self.version()
        flags = (*self._target_flags, *_COMPILE_FLAGS, *_LINK_FLAGS, *_LIBRARIES)
        if self.for_devices:
            flags = (*flags, *_SHARED_COMPILE_FLAGS, *_SHARED_LINK_FLAGS, *_SHARED_LIBRARIES, *self._header_hashes())
        return " ".join(("hexagon", version, compiler_words(self.sdk.compiler), *flags))

    def describe(self) -> str:
        """Such as 'Hexagon SDK 4.5.0.3, tools 8.5.13 for v66, standalone', or ', for QuRT'.

        Raises:
            ToolchainError: as `version`.
        """
        sdk = self.sdk.version or "of unknown version"
        system = "for QuRT" if self.for_devices else "standalone"
        return f"Hexagon SDK {sdk}, tools {self.version()} for {self.dsp_version}, {system}"

    def compile_c(
        self, source: Path, object_path: Path, include_dirs: Sequence[Path], flags: Sequence[str] = ()
    ) -> None:
        """Compile one C source into an object file.

        Raises:
            ToolchainError: the SDK is broken, or the source does not compile; its last lines are given.
        """
        includes = [f"-I{folder.absolute()}" for folder in include_dirs]
        paths = ["-c", str(source.absolute()), "-o", str(object_path.absolute())]
        of_system: tuple[str, ...] = ()
        if self.for_devices:
            folders = [self.sdk.root.absolute() / folder for folder in _HEADER_FOLDERS]
            of_system = (*_SHARED_COMPILE_FLAGS, *(f"-I{folder}" for folder in folders))
        arguments = [*_COMPILE_FLAGS, *of_system, *flags, *includes, *paths]
        self._run(arguments, f"{source.name} does not compile for Hexagon {self.dsp_version}")

    def link(self, objects: Sequence[Path], output: Path) -> None:
        """Link objects and the SDK's libraries into an executable, or for a device's DSP into a shared object.

        Raises:
            ToolchainError: the SDK is broken, or the link fails; the linker's last lines are given.
        """
        paths = [*(str(path.absolute()) for path in objects), "-o", str(output.absolute())]
        arguments = [*_LINK_FLAGS, *paths, *_LIBRARIES]
        if self.for_devices:
            places = [f"-Wl,-soname,{output.name}", f"-Wl,-L{self._shared_libraries.absolute()}"]
            arguments = [*_LINK_FLAGS, *_SHARED_LINK_FLAGS, *places, *paths, *_SHARED_LIBRARIES]
        self._run(arguments, f"{output.name} does not link for Hexagon {self.dsp_version}")

    @property
    def _target_flags(self) -> tuple[str, ...]:
        return (f"-m{self.dsp_version}", *_TARGET_FLAGS)

    @property
    def _shared_libraries(self) -> Path:
        return self.sdk.compiler.parents[1] / "target" / "hexagon" / "lib" / self.dsp_version / "G0" / "pic"

    def _check_parts(self) -> None:
        parts = [*(self.sdk.root / header for header in _HEADERS), self._shared_libraries]
        missing = next((path for path in parts if not path.exists()), None)
        if missing is not None:
            raise ToolchainError(
                f"The Hexagon SDK in {self.sdk.root} has no {missing.relative_to(self.sdk.root)}, which programs for"
                " a device's DSP are made with.",
                next_step="Install the whole SDK, not its tools alone; or time with --device hexagon-sim.",
            )

    def _header_hashes(self) -> tuple[str, ...]:
        """The compiled shims depend on them, and the tools' version says nothing of them."""
        return tuple(file_sha256(self.sdk.root / header) for header in _HEADERS)

    def _run(self, arguments: Sequence[str], failure: str) -> None:
        command = [str(self.sdk.compiler.absolute()), *self._target_flags, *arguments]
        compiler = f"hexagon-clang {self.version()}"
        run_compiler(command, _environment(self.cache_dir), failure, compiler, folder=self.cache_dir)


def _environment(home: Path) -> dict[str, str]:
    return {"PATH": os.defpath, "HOME": str(home.absolute()), "LC_ALL": "C"}


@lru_cache(maxsize=8)
def compiler_words(compiler: Path) -> str:
    """What an SDK's compiler says of its version, in one line.

    Raises:
        ToolchainError: it cannot be run.
    """
    next_step = f"Install the SDK's tools again, or name another SDK with {HEXAGON_SDK_VARIABLE}."
    try:
        outcome = run_limited([str(compiler), "--version"], _VERSION_LIMITS, environment=_environment(compiler.parent))
    except OSError as error:
        raise ToolchainError(
            f"The Hexagon SDK's compiler {compiler} cannot be run: {error}.", next_step=next_step
        ) from error
    lines = outcome.log.strip().splitlines()
    if not outcome.succeeded or not lines:
        said = lines[-1][:200] if lines else "nothing"
        raise ToolchainError(
            f"The Hexagon SDK's compiler {compiler} cannot be run: it {outcome.describe()} and said: {said}",
            next_step=next_step,
        )
    return lines[0][:200]
