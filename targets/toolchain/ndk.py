"""The C compiler and linker of an Android NDK: programs for a phone's own C library, bionic."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.targets.errors import ToolchainError
from halide_autotune.targets.process.c_toolchain import CToolchain
from halide_autotune.targets.process.compiler_run import program_version

# The first that is set names the NDK; otherwise it is the newest in the folder `ndk` of the Android SDK.
NDK_VARIABLES = ("ANDROID_NDK_ROOT", "ANDROID_NDK_HOME", "ANDROID_NDK")
SDK_VARIABLE = "ANDROID_HOME"

_COMPILE_FLAGS = ("-std=c11", "-O2", "-g0", "-fPIE")
# Newer phones have pages of 16 KiB and load only what is aligned to them.
_LINK_FLAGS = ("-O2", "-s", "-pie", "-Wl,-z,max-page-size=16384")
_LIBRARIES = ("-lm", "-ldl", "-llog")
_REVISION = re.compile(r"^Pkg\.Revision\s*=\s*([0-9][0-9A-Za-z.-]{0,40})\s*$", re.MULTILINE)
_CLANG_VERSION = re.compile(r"clang version ([0-9][0-9A-Za-z.+-]{0,40})")


@dataclass(frozen=True)
class NdkToolchain(CToolchain):
    """The NDK's clang for one architecture and API level; makes dynamic position-independent executables.

    Attributes:
        root: the NDK's folder.
        triple: Android's name of the target without the API level, such as 'aarch64-linux-android'.
        api_level: the API level of the oldest Android that programs run on.
    """

    root: Path
    triple: str
    api_level: int
    cache_dir: Path
    _name = "Android NDK"

    @property
    def _target(self) -> str:
        return self.triple

    @property
    def compiler(self) -> Path:
        """The compiler for the target.

        Raises:
            ToolchainError: the folder is not an NDK, or has no compiler for the target.
        """
        name = f"{self.triple}{self.api_level}-clang"
        for path in sorted(self.root.glob(f"toolchains/llvm/prebuilt/*/bin/{name}")):
            if os.access(path, os.X_OK) and path.is_file():
                return path
        raise ToolchainError(
            f"The Android NDK in {self.root} cannot be used: it has no toolchains/llvm/prebuilt/*/bin/{name}.",
            next_step=f"Set {NDK_VARIABLES[0]} to the folder of an NDK. To link with static musl instead, unset it, "
            f"{', '.join(NDK_VARIABLES[1:])} and {SDK_VARIABLE}.",
        )

    def version(self) -> str:
        """Return the revision of the NDK and clang's version, such as '26.1.10909125, clang 17.0.2'."""
        revision = _revision(self.root)
        next_step = f"Reinstall the NDK, or set {NDK_VARIABLES[0]} to another one."
        version = program_version(self.compiler, "The Android NDK's compiler", next_step, _CLANG_VERSION)
        return f"{revision}, clang {version}" if revision else f"clang {version}"

    def fingerprint(self) -> str:
        """Return everything of this toolchain that an object depends on, for cache keys."""
        flags = (*_COMPILE_FLAGS, *_LINK_FLAGS, *_LIBRARIES)
        return " ".join(("ndk", self.version(), f"{self.triple}{self.api_level}", *flags))

    def describe(self) -> str:
        """Return a phrase such as 'Android NDK 26.1, clang 17.0.2 for aarch64-linux-android28, bionic, dynamic'."""
        return f"Android NDK {self.version()} for {self.triple}{self.api_level}, bionic, dynamic"

    def _command(self) -> list[str]:
        return [str(self.compiler.absolute())]

    def _cpp_command(self) -> list[str]:
        return [f"{self.compiler.absolute()}++", "-static-libstdc++"]

    def _compile_flags(self) -> Sequence[str]:
        return _COMPILE_FLAGS

    def _link_arguments(self, files: Sequence[str], output: Path) -> Sequence[str]:
        return [*_LINK_FLAGS, *files, *_LIBRARIES]


def _revision(root: Path) -> str:
    """Return the revision from the NDK's properties; empty where there is none."""
    try:
        text = (root / "source.properties").read_text("utf-8", "replace")
    except OSError:
        return ""
    found = _REVISION.search(text)
    return found[1] if found else ""
