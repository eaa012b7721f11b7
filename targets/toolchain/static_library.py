"""Static libraries for any target, by the archiver of the `ziglang` wheel."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from halide_autotune.targets.errors import ToolchainError
from halide_autotune.targets.process.limited_process import ProcessLimits, run_limited

_LIMITS = ProcessLimits(time_s=120.0, memory_bytes=8 * 2**30)


def make_static_library(objects: Sequence[Path], library: Path) -> None:
    """Put ELF objects of any processor into a static library with a table of their symbols.

    Args:
        library: a new file.

    Raises:
        ToolchainError: the archiver is missing or fails.
    """
    # LLVM's reads the symbols of all processors. D leaves times and owners out.
    command = [sys.executable, "-P", "-m", "ziglang", "ar", "rcsD", str(library), *map(str, objects)]
    try:
        outcome = run_limited(command, _LIMITS, environment={"LC_ALL": "C"})
    except OSError as error:
        raise ToolchainError(f"{sys.executable} cannot be run: {error}.") from error
    if not outcome.succeeded or not os.access(library, os.R_OK):
        raise ToolchainError(
            f"{library.name} cannot be made ({outcome.describe()}): {' '.join(outcome.log.split())[:300]}",
            next_step=f"Install the archiver with: {sys.executable} -m pip install ziglang",
        )
