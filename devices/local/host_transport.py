"""Programs that run on this machine: natively, or under an emulator or a simulator."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from halide_autotune.devices.transport import RunOutcome, check_name
from halide_autotune.targets.errors import DeviceError, os_error_as, remedy
from halide_autotune.targets.process.limited_process import ProcessLimits, run_limited
from halide_autotune.targets.process.stop_signal import StopSignal


class HostTransport:
    """The transport of the devices of this machine: a temporary folder, and a launcher before the program.

    Several threads may call `run` at once.

    Args:
        parent_folder: where the device's folder is made.
        environment: the programs' environment variables.
        memory_bytes: the memory limit of a program.
        cores: the cores a program may use.
        launcher: the emulator's command line; empty runs natively.
        arguments_mark: what the launcher expects between the program and its arguments.

    Raises:
        DeviceError: the folder cannot be made; also from `push` and `pull` when a file cannot be copied.
    """

    def __init__(
        self,
        parent_folder: Path,
        environment: Mapping[str, str],
        memory_bytes: int,
        cores: frozenset[int] | None = None,
        launcher: Sequence[str] = (),
        arguments_mark: Sequence[str] = (),
    ) -> None:
        with os_error_as(DeviceError, f"No folder can be made in {parent_folder}"):
            parent_folder.mkdir(parents=True, exist_ok=True)
            self._folder = Path(tempfile.mkdtemp(prefix="device-", dir=parent_folder))
        self._environment = dict(environment)
        self._memory_bytes = memory_bytes
        self._cores = cores
        self._launcher = tuple(launcher)
        self._arguments_mark = tuple(arguments_mark)

    def push(self, source: Path, name: str) -> None:
        """See `Transport.push`. Always a copy, never a link: programs may write to it."""
        _copy(source, self._folder / check_name(name))

    def pull(self, name: str, destination: Path) -> None:
        """See `Transport.pull`."""
        _copy(self._folder / check_name(name), destination)

    def run(self, name: str, arguments: Sequence[str], time_s: float, stop: StopSignal | None = None) -> RunOutcome:
        """See `Transport.run`."""
        program = self._folder / check_name(name)
        # An emulator would start and complain in the program's place.
        if not os.access(program, os.X_OK):
            raise DeviceError(f"{name} cannot be started: it is not on the device, or not executable.")
        limits = ProcessLimits(time_s, self._memory_bytes, self._cores)
        with os_error_as(DeviceError, f"{name} cannot be started here"):
            outcome = run_limited(
                [*self._launcher, str(program), *self._arguments_mark, *arguments],
                limits,
                environment=self._environment,
                folder=self._folder,
                stop=stop,
            )
        return RunOutcome(outcome.exit_code, outcome.timed_out, outcome.stopped, outcome.log, outcome.duration_s)

    def remove(self, name: str) -> None:
        """See `Transport.remove`."""
        (self._folder / check_name(name)).unlink(missing_ok=True)

    def close(self) -> None:
        """See `Transport.close`."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _copy(source: Path, target: Path) -> None:
    # No file of a device has a leading dot, so the unfinished copy is in nobody's way.
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        shutil.copy(source, beside)
        os.replace(beside, target)
    except OSError as error:
        beside.unlink(missing_ok=True)
        message = f"{source} cannot be copied to {target}: {error.strerror}."
        raise DeviceError(message, next_step=remedy(error)) from error
