"""Halide's runtime for a target, as one object file."""

from __future__ import annotations

import os
from pathlib import Path

from targets.errors import ToolchainError
from targets.halide_install import HalideInstall
from targets.process.content_cache import ContentCache
from targets.process.limited_process import run_limited
from targets.process.outcome import ProcessLimits

_LIMITS = ProcessLimits(time_s=120.0, memory_bytes=4 * 2**30)
_FILE_NAME = "halide_runtime"
_ERROR_LINES = 6
# They change nothing in a runtime; with strict_float Halide 21 fails on its own runtime's code.
_FEATURES_OF_KERNELS = ("no_runtime", "strict_float")


def build_runtime_object(halide_target: str, cache: ContentCache, halide: HalideInstall) -> Path:
    """Halide's standalone runtime for `halide_target`, linked once with kernels built with `-no_runtime`.

    Takes under a second the first time; cached by the Halide installed and the target.

    Args:
        halide_target: such as 'arm-64-linux'; the features `no_runtime` and `strict_float` have no effect.

    Raises:
        ToolchainError: Halide does not know the target or has no runtime for it; its own words are given.
    """
    target = halide_target.strip()
    for feature in _FEATURES_OF_KERNELS:
        target = target.replace(f"-{feature}", "")
    key = ["halide runtime", halide.fingerprint(), target]
    return cache.get_or_build(key, ".o", lambda output: _build(target, halide, output))


def _build(target: str, halide: HalideInstall, output: Path) -> None:
    command = [str(halide.bin_dir / "gengen"), "-r", _FILE_NAME, "-e", "object", "-o", str(output.parent)]
    try:
        outcome = run_limited([*command, f"target={target}"], _LIMITS, environment={"LC_ALL": "C"})
    except OSError as error:
        raise ToolchainError(
            f"Halide's program {command[0]} cannot be run: {error}.",
            next_step="Install Halide again with: pip install --force-reinstall halide",
        ) from error
    # Halide names objects for Windows differently.
    made = [path for path in output.parent.glob(f"{_FILE_NAME}.*") if path.suffix in (".o", ".obj")]
    if not outcome.succeeded or not made:
        words = " ".join(outcome.log.split("\n")[:_ERROR_LINES]).strip()
        raise ToolchainError(
            f"Halide {halide.version} cannot make its runtime for the target '{target}' "
            f"({outcome.describe()}): {words}",
            next_step="Check the Halide target string of the profile, such as 'arm-64-linux'.",
        )
    os.replace(made[0], output)
