"""Halide's `.sample` files: a featurization with the time that was measured for it.

Layout: the `.featurization`, then float32 runtime in milliseconds, int32 pipeline id, int32 schedule id
(Halide, `featurization_to_sample.cpp`; little-endian). Halide's retraining tool aborts on a runtime of zero,
NaN or below zero, and leaves out what is above 100 seconds; here both are errors.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from halide_autotune.autotune_loop.store.featurization import (
    MAX_STAGES,
    PIPELINE_FEATURE_COUNT,
    Featurization,
    features_of,
    format_featurization,
)
from halide_autotune.targets.errors import WeightsError, os_error_as
from halide_autotune.targets.process.atomic_write import write_atomically
from halide_autotune.weights.network import Network

MAX_RUNTIME_MS = 100_000.0  # Halide's tool skips samples above 100 s
_TRAILER = struct.Struct("<fii")


@dataclass(frozen=True, eq=False)
class Sample:
    """One schedule with its measured runtime.

    Attributes:
        featurization: what the cost model sees of the schedule.
        runtime_ms: the measured runtime in milliseconds, above 0 and at most 100,000.
        pipeline_id: samples with the same id are compared with each other; any int32.
        schedule_id: names the schedule; any int32.

    Raises:
        WeightsError: the runtime or an id cannot be stored in a `.sample` file.
    """

    featurization: Featurization
    runtime_ms: float
    pipeline_id: int
    schedule_id: int = 0

    def __post_init__(self) -> None:
        # Checked as float32, as it is stored: a tiny double would become zero.
        runtime_ms = float(np.float32(self.runtime_ms)) if abs(self.runtime_ms) < 1e30 else math.nan
        if not 0 < runtime_ms <= MAX_RUNTIME_MS:
            raise WeightsError(
                f"A sample cannot have the runtime {self.runtime_ms} ms: "
                f"expected a time above 0 and at most {MAX_RUNTIME_MS:,.0f} ms.",
                next_step="Leave the sample out, or measure it again.",
            )
        for name, number in (("pipeline_id", self.pipeline_id), ("schedule_id", self.schedule_id)):
            if not -(2**31) <= number < 2**31:
                raise WeightsError(f"The {name} {number} of a sample does not fit into 32 bits with a sign.")


def read_sample(path: Path, network: Network = Network.ADAMS2019) -> Sample:
    """Read and check a `.sample` file.

    Raises:
        WeightsError: the file is missing, unreadable or damaged, or its runtime is not a plausible time.
    """
    row_bytes = 4 * (network.schedule_feature_count + PIPELINE_FEATURE_COUNT)
    unreadable, next_step = f"The sample {path} cannot be read", "Check the path, or leave the sample out."
    with os_error_as(WeightsError, unreadable, next_step=next_step), path.open("rb") as file:
        data = file.read(MAX_STAGES * row_bytes + _TRAILER.size + 1)
    if len(data) < _TRAILER.size:
        raise WeightsError(
            f"The sample {path} is damaged: it has {len(data)} bytes, fewer than its trailer of {_TRAILER.size}.",
            next_step="Leave the sample out.",
        )
    try:
        featurization = features_of(data, network, trailer_bytes=_TRAILER.size)
    except ValueError as error:
        raise WeightsError(f"The sample {path} is damaged: {error}.", next_step="Leave the sample out.") from error
    runtime_ms, pipeline_id, schedule_id = _TRAILER.unpack(data[-_TRAILER.size :])
    try:
        return Sample(featurization, runtime_ms, pipeline_id, schedule_id)
    except WeightsError as error:
        raise WeightsError(f"The sample {path} is unusable: {error.message}", next_step=error.next_step) from error


def format_sample(sample: Sample) -> bytes:
    """The bytes of the `.sample` file that holds this sample."""
    trailer = _TRAILER.pack(sample.runtime_ms, sample.pipeline_id, sample.schedule_id)
    return format_featurization(sample.featurization) + trailer


def write_sample(sample: Sample, path: Path) -> None:
    """Write a `.sample` file as a whole or not at all; after a power cut it may be empty.

    Raises:
        WeightsError: the name does not end in `.sample` (Halide's tool would skip it), or the file cannot be written.
    """
    if path.suffix != ".sample":
        raise WeightsError(f"A sample cannot be written to {path}: the name must end in .sample.")
    with os_error_as(
        WeightsError,
        f"The sample {path} cannot be written",
        next_step="Check that the folder exists and is writable, and that the disk is not full.",
    ):
        # A run writes all of them again at its end; who finds an empty one makes it anew.
        write_atomically(path, format_sample(sample), flushes=False)
