"""The protocol of what starts programs that a device's processor does not run itself."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class ProgramStarter(Protocol):
    """A program of the device's processor that starts others."""

    @property
    def name(self) -> str:
        """Its name on the device; its first argument is the other program's name."""
        ...

    def files(self, machine: str) -> tuple[tuple[Path, str], ...]:
        """Itself and what it needs beside it, for what the device's `uname -m` says; raises SdkError."""
        ...
