"""Programs that run on this machine: natively, or under an emulator or a simulator."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from devices.file_name import check_name
from devices.local.host_folder import HostFolder
from devices.transport import RunOutcome
from targets.errors import DeviceError
from targets.process.limited_process import ProcessLimits, run_limited
from targets.process.stop_signal import StopSignal


class HostTransport:
    """The transport of the devices of this machine: the same folder, with a launcher before the program.

    Several threads may call `run` at once.

    Args:
        parent_folder: where the device's folder is made.
        environment: what the programs see.
        memory_bytes: the memory limit of a program.
        cores: the cores it may use.
        launcher: the emulator's command line; empty runs natively.
        arguments_mark: what the launcher wants between the program and its arguments.
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
        self._folder = HostFolder(parent_folder)
        self._environment = dict(environment)
        self._memory_bytes = memory_bytes
        self._cores = cores
        self._launcher = tuple(launcher)
        self._arguments_mark = tuple(arguments_mark)

    def push(self, source: Path, name: str) -> None:
        """See `Transport.push`."""
        self._folder.push(source, name)

    def pull(self, name: str, destination: Path) -> None:
        """See `Transport.pull`."""
        self._folder.pull(name, destination)

    def run(self, name: str, arguments: Sequence[str], time_s: float, stop: StopSignal | None = None) -> RunOutcome:
        """See `Transport.run`."""
        program = self._folder.path / check_name(name)
        # An emulator would start and complain in the program's place.
        if not os.access(program, os.X_OK):
            raise DeviceError(f"{name} cannot be started: it is not on the device, or not executable.")
        limits = ProcessLimits(time_s, self._memory_bytes, self._cores)
        try:
            outcome = run_limited(
                [*self._launcher, str(program), *self._arguments_mark, *arguments],
                limits,
                environment=self._environment,
                folder=self._folder.path,
                stop=stop,
            )
        except OSError as error:
            raise DeviceError(f"{name} cannot be started here: {error.strerror}.") from error
        return RunOutcome(outcome.exit_code, outcome.timed_out, outcome.stopped, outcome.log, outcome.duration_s)

    def remove(self, name: str) -> None:
        """See `Transport.remove`."""
        self._folder.remove(name)

    def close(self) -> None:
        """See `Transport.close`."""
        self._folder.close()
