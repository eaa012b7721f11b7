"""The installed Halide wheel: its headers, libraries, plug-ins and tools."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.targets.errors import ToolchainError
from halide_autotune.targets.process.content_cache import file_sha256
from halide_autotune.targets.values.checks import nearest

_PLUGIN_PREFIX = "libautoschedule_"


@dataclass(frozen=True)
class HalideInstall:
    """One installed Halide.

    Attributes:
        root: the folder of `include/`, `lib64/`, `bin/` and `share/`.
        version: such as '21.0.0'.
    """

    root: Path
    version: str

    @property
    def include_dir(self) -> Path:
        """The folder of Halide.h and HalideRuntime.h."""
        return self.root / "include"

    @property
    def lib_dir(self) -> Path:
        """The folder of libHalide, the generator library and the autoscheduler plug-ins."""
        return self.root / ("lib64" if (self.root / "lib64").is_dir() else "lib")

    @property
    def library(self) -> Path:
        """libHalide, the compiler."""
        return self.lib_dir / "libHalide.so"

    @property
    def gengen_library(self) -> Path:
        """The library with the `main` of C++ generators."""
        return self.lib_dir / "libHalide_GenGen.a"

    @property
    def tools_dir(self) -> Path:
        """The folder of headers and sources that Halide's applications include."""
        return self.root / "share" / "tools"

    @property
    def bin_dir(self) -> Path:
        """The folder of Halide's programs: gengen, the retraining tools, featurization_to_sample."""
        return self.root / "bin"

    def plugin_names(self) -> tuple[str, ...]:
        """Return the autoschedulers that have a plug-in, in lower case as in the files' names, sorted."""
        found = self.lib_dir.glob(f"{_PLUGIN_PREFIX}*.so")
        return tuple(sorted(path.stem.removeprefix(_PLUGIN_PREFIX) for path in found))

    def plugin_path(self, autoscheduler_name: str) -> Path:
        """Return the plug-in of an autoscheduler, such as 'Adams2019' in upper or lower case.

        Raises:
            ToolchainError: there is none; the message has the nearest name.
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
        """Return the SHA-256 (hexadecimal) of an autoscheduler's plug-in.

        Raises:
            ToolchainError: there is none.
        """
        return file_sha256(self.plugin_path(autoscheduler_name))

    def fingerprint(self) -> str:
        """Return a cache key of the compiler: its version, and libHalide's size and time of change.

        The content of the library is not read: it has over 100 MB.
        """
        status = self.library.stat()
        return f"{self.version} {status.st_size} {status.st_mtime_ns}"


def find_halide_install() -> HalideInstall:
    """Find the Halide wheel of this Python without importing it.

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
            "The first Python package 'halide' on the path is not Halide's wheel.", next_step=next_step
        ) from error
    install = HalideInstall(Path(found.submodule_search_locations[0]), version)
    needed = (install.library, install.gengen_library, install.include_dir / "HalideRuntime.h")
    for path in needed:
        if not path.is_file():
            missing = path.relative_to(install.root)
            raise ToolchainError(
                f"Halide {version} in {install.root} is incomplete: {missing} is missing.",
                next_step="Reinstall it: pip install --force-reinstall halide",
            )
    return install
