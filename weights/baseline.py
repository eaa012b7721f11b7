"""The weights that Halide's autoschedulers start from, read from the plug-in.

The wheel has no file of them: they are embedded in `libautoschedule_*.so`. So these are exactly those of the plug-in,
whatever its version.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from halide_autotune.targets.errors import WeightsError
from halide_autotune.weights.network import Network
from halide_autotune.weights.weights_file import FEATURE_VERSION, SIGNATURE, Weights, parse_weights, weights_size_bytes


def baseline_weights(plugin_path: Path) -> Weights:
    """Read the weights inside an autoscheduler plug-in.

    Args:
        plugin_path: `libautoschedule_adams2019.so` or `libautoschedule_anderson2021.so`.

    Raises:
        WeightsError: the plug-in is missing or unreadable, or has no weights of a known version.
    """
    try:
        with plugin_path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as binary:
            found = _find_weights(binary, str(plugin_path))
    except (OSError, ValueError) as error:  # mmap raises ValueError for an empty file
        raise WeightsError(
            f"The autoscheduler plug-in {plugin_path} cannot be read: {error}.",
            next_step="Reinstall Halide: pip install --force-reinstall halide",
        ) from error
    if found is None:
        raise WeightsError(
            f"The plug-in {plugin_path} has no weights with feature version {FEATURE_VERSION}.",
            next_step="Use the plug-in of Adams2019 or Anderson2021 from Halide 21, or give a weights file.",
        )
    return found


def _find_weights(binary: mmap.mmap, source: str) -> Weights | None:
    """Return the first whole weights file in it; code may contain the signature's bytes by chance."""
    header = struct.pack("<4I", SIGNATURE, FEATURE_VERSION, FEATURE_VERSION, 6)
    offset = binary.find(header)
    while offset >= 0:
        for network in Network:
            try:
                return parse_weights(binary[offset : offset + weights_size_bytes(network)], source)
            except WeightsError:
                continue
        offset = binary.find(header, offset + 1)
    return None
