"""The weights that Halide's autoschedulers start from, found inside the plug-in itself.

The wheel has no file of them: they are embedded in `libautoschedule_*.so`. Reading them there gives exactly
what the plug-in uses, whatever its version.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from targets.errors import WeightsError
from weights.network import Network
from weights.weights_file import FEATURE_VERSION, SIGNATURE, Weights, parse_weights, weights_size_bytes


def baseline_weights(plugin_path: Path) -> Weights:
    """Read the built-in weights of an autoscheduler plug-in.

    Args:
        plugin_path: `libautoschedule_adams2019.so` or `libautoschedule_anderson2021.so`.

    Raises:
        WeightsError: the plug-in is missing or unreadable, or holds no weights of a known version.
    """
    try:
        with plugin_path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as binary:
            found = _find_weights(binary, str(plugin_path))
    except (OSError, ValueError) as error:  # mmap refuses an empty file with ValueError
        raise WeightsError(
            f"The autoscheduler plug-in {plugin_path} cannot be read: {error}.",
            next_step="Reinstall the halide package.",
        ) from error
    if found is None:
        raise WeightsError(
            f"The plug-in {plugin_path} holds no weights with feature version {FEATURE_VERSION}.",
            next_step="Use the plug-in of Adams2019 or Anderson2021 from Halide 21, or name a weights file.",
        )
    return found


def _find_weights(binary: mmap.mmap, source: str) -> Weights | None:
    """The first place where a whole weights file lies; code may hold the signature's bytes by chance."""
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
