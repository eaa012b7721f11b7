"""One run of a compiler or linker, with a limit, and its complaint as an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from targets.errors import ToolchainError
from targets.process.limited_process import ProcessLimits, run_limited
from targets.process.stop_signal import StopSignal

# The first use of a target builds its C library, which can take minutes on a slow machine.
_LIMITS = ProcessLimits(time_s=900.0, memory_bytes=8 * 2**30)
_ERROR_LINES = 15


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
        failure: what a failure is called, such as 'a.c does not compile for aarch64-linux-musl'.
        compiler: its name and version, for the error.
        folder: the working directory, made when missing; paths in `command` are absolute then.
        stop: kills it when set; that is no failure.

    Raises:
        ToolchainError: it cannot be run, or fails; its last lines are given.
    """
    try:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        outcome = run_limited(command, _LIMITS, environment=environment, folder=folder, stop=stop)
    except OSError as error:
        raise ToolchainError(f"{failure}: {error}.") from error
    if not outcome.succeeded and not outcome.stopped:
        lines = "\n".join(outcome.log.splitlines()[-_ERROR_LINES:])
        raise ToolchainError(f"{failure} ({compiler} {outcome.describe()}):\n{lines}")
