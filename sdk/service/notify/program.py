"""A notifier that is a program."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from halide_autotune.targets.process.limited_process import ProcessLimits, run_limited
from halide_autotune.targets.values.texts import printable

LIMIT_S = 30.0
_LIMITS = ProcessLimits(time_s=LIMIT_S, memory_bytes=8 * 2**30)
_MOST_CHARACTERS = 200


@dataclass(frozen=True)
class ProgramNotifier:
    """Starts a program, without a shell, with the document on its standard input. What it prints is not shown.

    Attributes:
        command: the program's path, and its arguments.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(hash=False, repr=False)

    @property
    def label(self) -> str:
        """The program's name, without its arguments."""
        return Path(self.command[0]).name

    def send(self, document: str) -> str:
        """See `Notifier.send`."""
        try:
            with tempfile.TemporaryFile() as stdin:
                stdin.write(document.encode())
                stdin.seek(0)
                outcome = run_limited(self.command, _LIMITS, environment=self.environment, stdin=stdin)
        except OSError as error:
            return f"it cannot be started: {error.strerror or error}"
        if outcome.succeeded:
            return ""
        last = next((line for line in reversed(outcome.log.splitlines()) if line.strip()), "")
        said = f": {printable(last)[:_MOST_CHARACTERS]}" if last else ""
        return f"it {outcome.describe()}{said}"
