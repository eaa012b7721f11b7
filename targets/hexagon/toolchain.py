"""Qualcomm's compiler and linker: for a Hexagon without an operating system (its simulator), and for a device's DSP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.targets.errors import ToolchainError
from halide_autotune.targets.hexagon.sdk import HEXAGON_SDK_VARIABLE, HexagonSdk
from halide_autotune.targets.process.c_toolchain import CToolchain
from halide_autotune.targets.process.compiler_run import program_version
from halide_autotune.targets.process.content_cache import file_sha256

# As in Halide's program for the simulator (src/runtime/hexagon_remote/Makefile): no small-data section. Without -mhvx,
# because the compiler would vectorise the runner's loops, and only kernels lock the vector unit.
_TARGET_FLAGS = ("-G0",)
_COMPILE_FLAGS = ("-std=c11", "-O2", "-g0")
_LINK_FLAGS = ("-O2", "-s")
# A device's DSP loads a shared object. As in the SDK's own build it has the position-independent libraries, binds its
# own symbols, and takes memory from the heap of the DSP's process. Some releases' headers use `asm` (gnu11).
_SHARED_COMPILE_FLAGS = ("-std=gnu11", "-fPIC")
_WRAPPED = ("malloc", "calloc", "free", "realloc", "memalign")
_SHARED_LINK_FLAGS = ("-fPIC", "-shared", "-Wl,-Bsymbolic", *(f"-Wl,--wrap={name}" for name in _WRAPPED))
_SHARED_LIBRARIES = ("-lc",)
_HEADER_FOLDERS = ("incs", "incs/stddef")
_HEADERS = ("incs/HAP_perf.h", "incs/HAP_power.h")
# libhexagon has hexagon_sim_read_pcycles and the vector unit.
_LIBRARIES = ("-lhexagon", "-lm")


@dataclass(frozen=True)
class HexagonToolchain(CToolchain):
    """The hexagon-clang of an SDK, for one DSP version.

    Attributes:
        dsp_version: such as 'v66'.
        for_devices: links shared objects for QuRT, the system of devices' DSPs; else programs without a system.
    """

    sdk: HexagonSdk
    dsp_version: str
    cache_dir: Path
    for_devices: bool = False
    _name = "hexagon-clang"

    @property
    def _target(self) -> str:
        return f"Hexagon {self.dsp_version}"

    @property
    def shim_sources(self) -> tuple[Path, ...]:
        """What Halide's runtime and the runner need that the DSP's system lacks, or in place of a system."""
        standalone = ("memory_shims.c", "standalone_shims.c")
        of_system = ("qurt_shims.c",) if self.for_devices else standalone
        return tuple(Path(__file__).parent / name for name in ("shims.c", *of_system))

    def version(self) -> str:
        """Return the version of the SDK's tools, after checking that their compiler runs."""
        self.sdk.check_dsp_version(self.dsp_version)
        if self.for_devices:
            self._check_parts()
        compiler_words(self.sdk.compiler)
        return self.sdk.tools_version

    def fingerprint(self) -> str:
        """Return everything of this toolchain that an object depends on, for cache keys."""
        version = self.version()
        flags = (*self._target_flags, *_COMPILE_FLAGS, *_LINK_FLAGS, *_LIBRARIES)
        if self.for_devices:
            # The version of the tools does not tell the headers apart that the shims include.
            hashes = [file_sha256(self.sdk.root / header) for header in _HEADERS]
            flags = (*flags, *_SHARED_COMPILE_FLAGS, *_SHARED_LINK_FLAGS, *_SHARED_LIBRARIES, *hashes)
        return " ".join(("hexagon", version, compiler_words(self.sdk.compiler), *flags))

    def describe(self) -> str:
        """Return a phrase such as 'Hexagon SDK 4.5.0.3, tools 8.5.13 for v66, standalone' (or ', for QuRT')."""
        sdk = self.sdk.version or "of unknown version"
        system = "for QuRT" if self.for_devices else "standalone"
        return f"Hexagon SDK {sdk}, tools {self.version()} for {self.dsp_version}, {system}"

    def _command(self) -> list[str]:
        return [str(self.sdk.compiler.absolute()), *self._target_flags]

    def _compile_flags(self) -> Sequence[str]:
        if not self.for_devices:
            return _COMPILE_FLAGS
        headers = [f"-I{self.sdk.root.absolute() / folder}" for folder in _HEADER_FOLDERS]
        return [*_COMPILE_FLAGS, *_SHARED_COMPILE_FLAGS, *headers]

    def _link_arguments(self, files: Sequence[str], output: Path) -> Sequence[str]:
        if not self.for_devices:
            return [*_LINK_FLAGS, *files, *_LIBRARIES]
        places = [f"-Wl,-soname,{output.name}", f"-Wl,-L{self._shared_libraries.absolute()}"]
        return [*_LINK_FLAGS, *_SHARED_LINK_FLAGS, *places, *files, *_SHARED_LIBRARIES]

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
                " a device's DSP need.",
                next_step="Install the whole SDK, not only its tools, or use --device hexagon-sim.",
            )


def compiler_words(compiler: Path) -> str:
    """Return the first line of `hexagon-clang --version`.

    Raises:
        ToolchainError: the compiler cannot be run.
    """
    next_step = f"Reinstall the SDK's tools, or set {HEXAGON_SDK_VARIABLE} to another SDK."
    return program_version(compiler, "The Hexagon SDK's compiler", next_step)
