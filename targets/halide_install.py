"""Where the Halide wheel keeps its headers, libraries, plug-ins and tools."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from targets.errors import ToolchainError
from targets.process.content_cache import file_sha256
from targets.values.checks import nearest

_PLUGIN_PREFIX = "libautoschedule_"


@dataclass(frozen=True)
class HalideInstall:
    """One installed Halide.

    Attributes:
        root: the folder that holds `include/`, `lib64/`, `bin/` and `share/`.
        version: Halide's version, such as '21.0.0'.
    """

    root: Path
    version: str

    @property
    def include_dir(self) -> Path:
        """Holds Halide.h and HalideRuntime.h."""
        return self.root / "include"

    @property
    def lib_dir(self) -> Path:
        """Holds libHalide, the generator library and the autoscheduler plug-ins."""
        return self.root / ("lib64" if (self.root / "lib64").is_dir() else "lib")

    @property
    def library(self) -> Path:
        """The compiler itself."""
        return self.lib_dir / "libHalide.so"

    @property
    def gengen_library(self) -> Path:
        """The `main` that turns a C++ generator into a program."""
        return self.lib_dir / "libHalide_GenGen.a"

    @property
    def tools_dir(self) -> Path:
        """Headers and sources that Halide's applications include."""
        return self.root / "share" / "tools"

    @property
    def bin_dir(self) -> Path:
        """Halide's programs: gengen, the retraining tools, featurization_to_sample."""
        return self.root / "bin"

    def plugin_names(self) -> tuple[str, ...]:
        """The autoschedulers that have a plug-in, as their files spell them (lower case), sorted."""
        found = self.lib_dir.glob(f"{_PLUGIN_PREFIX}*.so")
        return tuple(sorted(path.stem.removeprefix(_PLUGIN_PREFIX) for path in found))

    def plugin_path(self, autoscheduler_name: str) -> Path:
        """The plug-in of an autoscheduler, such as 'Adams2019' (upper and lower case alike).

        Raises:
            ToolchainError: there is none of that name; the nearest name is given.
        """
        names = self.plugin_names()
        wanted = autoscheduler_name.lower()
        if wanted in names:
            return self.lib_dir / f"{_PLUGIN_PREFIX}{wanted}.so"
        close = nearest(wanted, names)
        known = ", ".join(name.capitalize() for name in names) or "none"
        hint = f"Did you mean {close.capitalize()}?" if close else f"There are: {known}."
        raise ToolchainError(
            f"Halide {self.version} in {self.root} has no autoscheduler '{autoscheduler_name}'.",
            next_step=hint,
        )

    def plugin_sha256(self, autoscheduler_name: str) -> str:
        """The SHA-256 (hexadecimal) of an autoscheduler's plug-in.

        Raises:
            ToolchainError: there is none of that name.
        """
        path = self.plugin_path(autoscheduler_name)
        status = path.stat()
        return _cached_sha256(path, status.st_size, status.st_mtime_ns)

    def fingerprint(self) -> str:
        """What must change when the compiler does: the version and libHalide's size and time of change.

        The library has over 100 MB, so its content is not read for a cache key.
        """
        status = self.library.stat()
        return f"{self.version} {status.st_size} {status.st_mtime_ns}"


@lru_cache(maxsize=32)
def _cached_sha256(path: Path, size_bytes: int, changed_ns: int) -> str:
    return file_sha256(path)


def find_halide_install() -> HalideInstall:
    """The Halide wheel of this Python, found without importing it.

    Raises:
        ToolchainError: Halide is not installed, or parts of it are missing.
    """
    next_step = "Install it with: pip install halide"
    found = importlib.util.find_spec("halide")
    if found is None or not found.submodule_search_locations:
        raise ToolchainError("Halide is not installed in this Python.", next_step=next_step)
    try:
        version = importlib.metadata.version("halide")
    except importlib.metadata.PackageNotFoundError as error:
        raise ToolchainError(
            "The Python package 'halide' that is found first is not Halide's wheel.", next_step=next_step
        ) from error
    install = HalideInstall(Path(found.submodule_search_locations[0]), version)
    needed = (install.library, install.gengen_library, install.include_dir / "HalideRuntime.h")
    for path in needed:
        if not path.is_file():
            missing = path.relative_to(install.root)
            raise ToolchainError(
                f"Halide {version} in {install.root} is incomplete: {missing} is missing.",
                next_step="Install it again with: pip install --force-reinstall halide",
            )
    return install
