"""The protocol that every kind of generator fulfils."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from targets.process.outcome import ProcessLimits, ProcessOutcome
from targets.process.stop_signal import StopSignal


class GeneratorProgram(Protocol):
    """Something that takes the arguments of Halide's `generate_filter_main`.

    Implementations may be used from several threads at once; each run is a process of its own, so that a crash, a
    hang or a search that eats the memory ends nothing else.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The generators it registers, sorted."""
        ...

    @property
    def sha256(self) -> str:
        """Hash of what it was made from."""
        ...

    def run(self, arguments: Sequence[str], limits: ProcessLimits, stop: StopSignal | None = None) -> ProcessOutcome:
        """Run once with `arguments`; never raises for what the generator does."""
        ...

    def close(self) -> None:
        """Release its processes."""
        ...
