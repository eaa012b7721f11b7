"""Run compilers and linkers with a limit, and turn their failures into errors that show what they printed."""

from __future__ import annotations

import os
import platform
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from halide_autotune.targets.errors import ToolchainError
from halide_autotune.targets.process.content_cache import file_sha256
from halide_autotune.targets.process.disk_space import full_disk
from halide_autotune.targets.process.limited_process import ProcessLimits, run_limited
from halide_autotune.targets.process.stop_signal import StopSignal

# The first use of a target builds its C library, which can take minutes on a slow machine.
_LIMITS = ProcessLimits(time_s=900.0, memory_bytes=8 * 2**30)
_VERSION_LIMITS = ProcessLimits(time_s=60.0, memory_bytes=8 * 2**30)
_ERROR_LINES = 15
_FIRST_ERROR_LINES = 12
_LONGEST_LINE_CHARACTERS = 200
_FIRST_LINE = re.compile(r"(.+)")


def run_compiler(
    command: Sequence[str],
    environment: Mapping[str, str],
    failure: str,
    compiler: str,
    *,
    folder: Path | None = None,
    stop: StopSignal | None = None,
) -> None:
    """Run a compiler to its end.

    Args:
        failure: the start of the error message, such as 'a.c does not compile for aarch64-linux-musl'.
        compiler: its name and version, for the error.
        folder: the working directory, made when missing; the paths in `command` must be absolute then.
        stop: kills the compiler when set; that is not a failure.

    Raises:
        ToolchainError: it cannot be run, or fails; the message ends with its last lines.
    """
    try:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        outcome = run_limited(command, _LIMITS, environment=environment, folder=folder, stop=stop)
    except OSError as error:
        raise ToolchainError(f"{failure}: {error}.") from error
    if not outcome.succeeded and not outcome.stopped:
        if full := full_disk(_written_to(command, folder)):
            raise ToolchainError(f"{failure}. {full}")
        lines = "\n".join(outcome.log.splitlines()[-_ERROR_LINES:])
        raise ToolchainError(f"{failure} ({compiler} {outcome.describe()}):\n{lines}")


def _written_to(command: Sequence[str], folder: Path | None) -> list[Path]:
    """The folders that a compiler writes into: that of its output, its working directory, and that of its notes."""
    outputs = [Path(output).parent for option, output in pairwise(command) if option == "-o"]
    return [*outputs, *([] if folder is None else [folder]), Path(tempfile.gettempdir())]


def find_compiler(names: Sequence[str], environment: Mapping[str, str], purpose: str, next_step: str) -> str:
    """Return the first of these compilers on the environment's PATH.

    Args:
        purpose: the start of the error message, such as 'The simulated clock needs a C compiler'.

    Raises:
        ToolchainError: none is installed.
    """
    for name in names:
        if found := shutil.which(name, path=environment.get("PATH", "")):
            return found
    raise ToolchainError(f"{purpose}: none of {', '.join(names)} is installed.", next_step=next_step)


def compiler_facts(compiler: str) -> list[str]:
    """Return what files that a compiler builds for this machine depend on, beside their sources and flags.

    It is for cache keys: machines may share a cache.

    Raises:
        OSError: the compiler cannot be read.
    """
    program = Path(compiler).resolve()
    return [platform.machine(), *platform.libc_ver(), str(program), file_sha256(program)]


def first_errors(log: str, mark: re.Pattern[str]) -> str:
    """Return the first cause and what follows.

    A linker names what is missing before the compiler says that it failed.

    Args:
        mark: what is found in the line of an error; without any the log's start is returned.
    """
    lines = log.splitlines()
    start = next((index for index, line in enumerate(lines) if mark.search(line)), 0)
    return "\n".join(lines[start : start + _FIRST_ERROR_LINES])


def compiler_environment(home: Path) -> dict[str, str]:
    """Return an environment that does not depend on the user's; vendors' compilers may be shell scripts."""
    return {"PATH": os.defpath, "HOME": str(home.absolute()), "LC_ALL": "C"}


@lru_cache(maxsize=16)
def program_version(program: Path, name: str, next_step: str, pattern: re.Pattern[str] = _FIRST_LINE) -> str:
    """Return what `program --version` prints: the first group of `pattern`, at most 200 characters of it.

    Args:
        name: what the program is, for the error.

    Raises:
        ToolchainError: it cannot be run, fails, or prints something else.
    """
    environment = compiler_environment(program.parent)
    try:
        outcome = run_limited([str(program), "--version"], _VERSION_LIMITS, environment=environment)
    except OSError as error:
        raise ToolchainError(f"{name} {program} cannot be run: {error}.", next_step=next_step) from error
    found = pattern.search(outcome.log.strip())
    if outcome.succeeded and found is not None:
        return found[1][:_LONGEST_LINE_CHARACTERS]
    printed = (outcome.log.strip().splitlines() or ["nothing"])[-1][:_LONGEST_LINE_CHARACTERS]
    wrong = "printed no version, but" if outcome.succeeded else f"cannot be run: it {outcome.describe()} and printed"
    raise ToolchainError(f"{name} {program} {wrong}: {printed}", next_step=next_step)
