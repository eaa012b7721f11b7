"""A build folder of CMake: configured again, and its targets built, by the CMake that made it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.targets.cmake.reply import CMakeReply, read_reply, write_query
from halide_autotune.targets.errors import ToolchainError, UsageError
from halide_autotune.targets.process.compiler_run import first_errors
from halide_autotune.targets.process.limited_process import ProcessLimits, run_limited

_LIMITS = ProcessLimits(time_s=3600.0, memory_bytes=16 * 2**30)
_OWN_CMAKE = re.compile(r"^CMAKE_COMMAND:INTERNAL=(/.+)$", re.MULTILINE)
_ERROR = re.compile(r"CMake Error|\berror:|undefined reference|multiple definition|cannot find -l|No rule to make")
# A command of the project's own that fails: Ninja's words, and make's.
_FAILED = re.compile(r"FAILED:|\*\*\*")


@dataclass(frozen=True)
class CMakeBuildFolder:
    """A build folder that CMake has configured before.

    Attributes:
        folder: its absolute path.
        cmake: the program.
    """

    folder: Path
    cmake: str
    environment: Mapping[str, str]

    def configure(self) -> CMakeReply:
        """Run CMake, which changes what has changed, and return what it says of the project.

        Raises:
            ToolchainError: CMake fails; the message has its first error. Or it does not answer.
        """
        try:
            write_query(self.folder)
        except OSError as error:
            raise ToolchainError(f"{self.folder} cannot be written ({error.strerror}).") from error
        self._run([str(self.folder)], f"CMake cannot configure {self.folder}")
        return read_reply(self.folder)

    def build(self, targets: Sequence[str], configuration: str) -> None:
        """Build targets.

        Raises:
            ToolchainError: one cannot be built; the message has the first error.
        """
        arguments = ["--build", str(self.folder), "--parallel", str(os.cpu_count() or 1), "--target", *targets]
        if configuration:
            arguments += ["--config", configuration]
        self._run(arguments, f"CMake cannot build {', '.join(targets)} in {self.folder}")

    def _run(self, arguments: Sequence[str], failure: str) -> None:
        try:
            outcome = run_limited([self.cmake, *arguments], _LIMITS, environment=self.environment)
        except OSError as error:
            raise ToolchainError(f"{failure}: {self.cmake} does not start ({error.strerror}).") from error
        if not outcome.succeeded:
            mark = _ERROR if _ERROR.search(outcome.log) else _FAILED
            command = shlex.join(["cmake", *arguments])
            raise ToolchainError(
                f"{failure} (it {outcome.describe()}):\n{first_errors(outcome.log, mark)}",
                next_step=f"\nMake this work first: {command}",
            )


def open_build_folder(folder: Path, environment: Mapping[str, str]) -> CMakeBuildFolder:
    """Return a build folder with the CMake that configured it, else the one on the PATH.

    Raises:
        UsageError: CMake has not configured it.
        ToolchainError: CMake is not installed.
    """
    cache = folder / "CMakeCache.txt"
    try:
        found = _OWN_CMAKE.search(cache.read_text(errors="replace"))
    except OSError as error:
        raise UsageError(
            f"--cmake: {folder} is not a build folder that CMake has configured: it has no CMakeCache.txt.",
            next_step="Give the folder that `cmake -S . -B build` made.",
        ) from error
    own = shutil.which(found[1]) if found else None
    cmake = own or shutil.which("cmake", path=environment.get("PATH", ""))
    if cmake is None:
        raise ToolchainError(
            f"--cmake needs CMake, and no cmake is on the PATH; {folder} was configured with {found[1]}."
            if found
            else "--cmake needs CMake, and no cmake is on the PATH.",
            next_step="On Debian: apt-get install cmake. Or: pip install cmake",
        )
    return CMakeBuildFolder(folder, cmake, environment)
