"""A built generator executable."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from targets.errors import GeneratorError
from targets.process.content_cache import file_sha256
from targets.process.limited_process import run_limited
from targets.process.outcome import ProcessLimits, ProcessOutcome
from targets.process.stop_signal import StopSignal

_LISTING_LIMITS = ProcessLimits(time_s=30.0, memory_bytes=4 * 2**30)


class ExecutableGeneratorProgram:
    """Runs a generator executable that is linked with Halide's GenGen main.

    Args:
        source: the user's file that the SDK has built it from; None where the executable is the user's.

    Raises:
        GeneratorError: it does not start, or does not behave as a generator.
    """

    def __init__(
        self,
        file: Path,
        environment: Mapping[str, str],
        halide_library_folder: Path,
        source: Path | None = None,
    ) -> None:
        self._file = file
        self._source = source
        search_path = [environment.get("LD_LIBRARY_PATH", ""), str(halide_library_folder)]
        self._environment = {**environment, "LD_LIBRARY_PATH": ":".join(filter(None, search_path))}
        self.sha256 = file_sha256(file)
        self.names = self._list_names()

    def _list_names(self) -> tuple[str, ...]:
        # Called without a generator, GenGen prints its usage and then the names.
        try:
            outcome = run_limited([str(self._file)], _LISTING_LIMITS, environment=self._environment)
        except OSError as error:
            raise GeneratorError(
                f"{self._file} cannot be started: {error.strerror}.",
                next_step="Build it for this machine; a generator runs on the host, whatever the target.",
            ) from error
        listing = re.search(r"available Generators are:\n((?:[ \t]+\S+\n?)+)", outcome.log)
        if listing is None:
            raise self._registers_none(outcome)
        return tuple(sorted(listing.group(1).split()))

    def _registers_none(self, outcome: ProcessOutcome) -> GeneratorError:
        shown = outcome.log.strip().splitlines()
        ended = outcome.describe() + (f" after printing {shown[-1]!r}." if shown else " and printed nothing.")
        if self._source is None:
            return GeneratorError(
                f"{self._file} is not a generator executable with registered generators: it {ended}",
                next_step="Link it with libHalide_GenGen.a and use HALIDE_REGISTER_GENERATOR.",
            )
        return GeneratorError(
            f"{self._source} registers no generator: built with Halide's main, it {ended}",
            next_step="Put HALIDE_REGISTER_GENERATOR(Class, name) below the generator's class, and leave main() out.",
        )

    def run(self, arguments: Sequence[str], limits: ProcessLimits, stop: StopSignal | None = None) -> ProcessOutcome:
        """Run the executable with `arguments`."""
        return run_limited([str(self._file), *arguments], limits, environment=self._environment, stop=stop)

    def close(self) -> None:
        """Nothing is kept open."""
