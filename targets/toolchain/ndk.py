"""The C compiler and linker of an Android NDK: programs for a phone's own C library, bionic."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from targets.errors import ToolchainError
from targets.process.compiler_run import run_compiler
from targets.process.limited_process import ProcessLimits, run_limited
from targets.process.stop_signal import StopSignal

# The first that is set names the NDK; else it is the newest in the folder `ndk` of the Android SDK.
NDK_VARIABLES = ("ANDROID_NDK_ROOT", "ANDROID_NDK_HOME", "ANDROID_NDK")
SDK_VARIABLE = "ANDROID_HOME"

_VERSION_LIMITS = ProcessLimits(time_s=30.0, memory_bytes=4 * 2**30)
_COMPILE_FLAGS = ("-std=c11", "-O2", "-g0", "-fPIE")
# Newer phones have pages of 16 KiB, and load nothing that is aligned to less.
_LINK_FLAGS = ("-O2", "-s", "-pie", "-Wl,-z,max-page-size=16384")
_LIBRARIES = ("-lm", "-ldl", "-llog")
_REVISION = re.compile(r"^Pkg\.Revision\s*=\s*([0-9][0-9A-Za-z.-]{0,40})\s*$", re.MULTILINE)
_CLANG_VERSION = re.compile(r"clang version ([0-9][0-9A-Za-z.+-]{0,40})")
_LARGEST_PROPERTIES_BYTES = 64 * 1024


@dataclass(frozen=True)
class NdkToolchain:
    """The NDK's clang for one architecture and API level; makes dynamic position-independent executables.

    Attributes:
        root: the NDK's folder.
        triple: Android's name of the target without the API level, such as 'aarch64-linux-android'.
        api_level: of the oldest Android that programs are to run on.
        cache_dir: what clang sees as its home folder.
    """

    root: Path
    triple: str
    api_level: int
    cache_dir: Path

    @property
    def shim_sources(self) -> tuple[Path, ...]:
        """None: bionic has everything that Halide's Android runtime calls."""
        return ()

    @property
    def is_prepared(self) -> bool:
        """True: an NDK comes with its libraries."""
        return True

    def prepare(self, stop: StopSignal | None = None) -> None:
        """Nothing."""

    @property
    def compiler(self) -> Path:
        """The compiler's own program for the target.

        Raises:
            ToolchainError: the folder is no NDK, or one without this target; says which variables name it.
        """
        name = f"{self.triple}{self.api_level}-clang"
        for path in sorted(self.root.glob(f"toolchains/llvm/prebuilt/*/bin/{name}")):
            if os.access(path, os.X_OK) and path.is_file():
                return path
        raise ToolchainError(
            f"The Android NDK in {self.root} cannot be used: there is no program "
            f"toolchains/llvm/prebuilt/*/bin/{name} in it.",
            next_step=f"Set {NDK_VARIABLES[0]} to the folder of an NDK; or unset it, {', '.join(NDK_VARIABLES[1:])} "
            f"and {SDK_VARIABLE}, to link with static musl.",
        )

    def version(self) -> str:
        """The NDK's revision and clang's version, such as '26.1.10909125, clang 17.0.2'.

        Raises:
            ToolchainError: the folder is no NDK, or its compiler cannot be run.
        """
        revision = _revision(self.root)
        clang = f"clang {_clang_version(self.compiler, self.cache_dir)}"
        return f"{revision}, {clang}" if revision else clang

    def fingerprint(self) -> str:
        """Everything of this toolchain that an object depends on, for cache keys.

        Raises:
            ToolchainError: as `version`.
        """
        flags = (*_COMPILE_FLAGS, *_LINK_FLAGS, *_LIBRARIES)
        return " ".join(("ndk", self.version(), f"{self.triple}{self.api_level}", *flags))

    def describe(self) -> str:
        """Such as 'Android NDK 26.1.10909125, clang 17.0.2 for aarch64-linux-android28, bionic, dynamic'.

        Raises:
            ToolchainError: as `version`.
        """
        return f"Android NDK {self.version()} for {self.triple}{self.api_level}, bionic, dynamic"

    def compile_c(
        self, source: Path, object_path: Path, include_dirs: Sequence[Path], flags: Sequence[str] = ()
    ) -> None:
        """Compile one C source into an object file.

        Raises:
            ToolchainError: the NDK is broken, or the source does not compile; its last lines are given.
        """
        includes = [f"-I{folder.absolute()}" for folder in include_dirs]
        paths = ["-c", str(source.absolute()), "-o", str(object_path.absolute())]
        self._run([*_COMPILE_FLAGS, *flags, *includes, *paths], f"{source.name} does not compile for {self.triple}")

    def link(self, objects: Sequence[Path], output: Path) -> None:
        """Link objects and Android's libraries into an executable.

        Raises:
            ToolchainError: the NDK is broken, or the link fails; the linker's last lines are given.
        """
        paths = [*(str(path.absolute()) for path in objects), "-o", str(output.absolute())]
        self._run([*_LINK_FLAGS, *paths, *_LIBRARIES], f"{output.name} does not link for {self.triple}")

    def _run(self, arguments: Sequence[str], failure: str) -> None:
        command = [str(self.compiler.absolute()), *arguments]
        folder, ndk = self.cache_dir, f"Android NDK {self.version()}"
        run_compiler(command, _environment(folder), failure, ndk, folder=folder)


def _environment(cache_dir: Path) -> dict[str, str]:
    # The NDK's programs for a target are shell scripts.
    return {"PATH": os.defpath, "HOME": str(cache_dir.absolute()), "LC_ALL": "C"}


def _revision(root: Path) -> str:
    """What the NDK says of itself; empty where it says nothing."""
    try:
        with (root / "source.properties").open("rb") as file:
            text = file.read(_LARGEST_PROPERTIES_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    found = _REVISION.search(text)
    return found[1] if found else ""


@lru_cache(maxsize=8)
def _clang_version(compiler: Path, cache_dir: Path) -> str:
    try:
        outcome = run_limited([str(compiler), "--version"], _VERSION_LIMITS, environment=_environment(cache_dir))
    except OSError as error:
        raise _not_runnable(compiler, str(error)) from error
    found = _CLANG_VERSION.search(outcome.log)
    if not outcome.succeeded or found is None:
        last_line = (outcome.log.strip().splitlines() or ["nothing"])[-1]
        raise _not_runnable(compiler, f"it {outcome.describe()} and said: {last_line[:200]}")
    return found[1]


def _not_runnable(compiler: Path, reason: str) -> ToolchainError:
    return ToolchainError(
        f"The Android NDK's compiler {compiler} cannot be run: {reason}.",
        next_step=f"Install the NDK again, or set {NDK_VARIABLES[0]} to another one.",
    )
