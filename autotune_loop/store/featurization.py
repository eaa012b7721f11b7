"""Halide's `.featurization` files: how the cost model sees one schedule of one pipeline.

Layout (little-endian float32, no header): one row per stage from the output towards the inputs; each row
holds the schedule features (39 for Adams2019, 73 for Anderson2021), then 287 pipeline features. Of those the
first 7 are a mask of the types in use; the rest are 40 features x 7 types, row by row (Halide,
`src/autoschedulers/*/Featurization.h`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from halide_autotune.targets.errors import WeightsError, os_error_as
from halide_autotune.weights.network import Network

TYPE_COUNT = 7  # Bool, UInt8, UInt16, UInt32, UInt64 (each with its signed sister), Float, Double
OPERATION_COUNT = 24  # the rows of the operation histogram; 16 rows of memory accesses follow
PIPELINE_FEATURE_COUNT = TYPE_COUNT * 41
MAX_STAGES = 10 * 1024 * 1024 // (39 + PIPELINE_FEATURE_COUNT)  # what Halide's retraining tool accepts
MAX_SCHEDULE_FEATURE = 1e14  # beyond this its computation overflowed; Halide's retraining tool rejects it too

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Featurization:
    """The features of one schedule; stage 0 is the pipeline's output.

    Attributes:
        schedule_features: (stages, 39 or 73) float32, depends on the schedule.
        pipeline_features: (stages, 287) float32, depends on the algorithm only.
    """

    schedule_features: FloatArray
    pipeline_features: FloatArray

    @property
    def stages(self) -> int:
        """Number of stages."""
        return int(self.schedule_features.shape[0])

    @property
    def network(self) -> Network:
        """The cost model that these features are for."""
        count = self.schedule_features.shape[1]
        return next(network for network in Network if network.schedule_feature_count == count)

    @cached_property
    def schedule_sha256(self) -> str:
        """SHA-256 (hex) of the schedule features: schedules that share it look the same to the model."""
        return hashlib.sha256(self.schedule_features.astype("<f4").tobytes()).hexdigest()

    @cached_property
    def pipeline_id(self) -> int:
        """A positive 31-bit number made from the pipeline features, equal for two sizes of one pipeline."""
        digest = hashlib.sha256(self.pipeline_features.astype("<f4").tobytes()).digest()
        return int.from_bytes(digest[:4], "little") % 0x7FFFFFFF + 1


def read_featurization(path: Path, network: Network = Network.ADAMS2019) -> Featurization:
    """Read and check a `.featurization` file.

    Raises:
        WeightsError: the file is missing, unreadable, cut short, too large, or holds impossible features.
    """
    row_bytes = 4 * (network.schedule_feature_count + PIPELINE_FEATURE_COUNT)
    next_step = "Search for this schedule again."
    unreadable = f"The featurization {path} cannot be read"
    with os_error_as(WeightsError, unreadable, next_step=next_step), path.open("rb") as file:
        data = file.read(MAX_STAGES * row_bytes + 1)
    try:
        return features_of(data, network)
    except ValueError as error:
        raise WeightsError(f"The featurization {path} is damaged: {error}.", next_step=next_step) from error


def features_of(data: bytes, network: Network, *, trailer_bytes: int = 0) -> Featurization:
    """The features in a file that begins with them.

    Args:
        data: the whole file.
        trailer_bytes: what follows them.

    Raises:
        ValueError: no whole number of stages, none, or more than Halide's tool takes; a feature that is negative, NaN,
            infinite, or (a schedule feature) beyond 1e14; the text continues a message.
    """
    row_floats = network.schedule_feature_count + PIPELINE_FEATURE_COUNT
    stages, rest_bytes = divmod(len(data) - trailer_bytes, 4 * row_floats)
    if rest_bytes or not 0 < stages <= MAX_STAGES:
        more = f" and {trailer_bytes} more" if trailer_bytes else ""
        raise ValueError(
            f"it has {len(data):,} bytes where {4 * row_floats:,} for each of 1 to {MAX_STAGES:,} stages of "
            f"{network}{more} were expected"
        )
    rows = np.frombuffer(data, dtype="<f4", count=stages * row_floats).astype(np.float32).reshape(stages, row_floats)
    schedule_features = np.ascontiguousarray(rows[:, : network.schedule_feature_count])
    pipeline_features = np.ascontiguousarray(rows[:, network.schedule_feature_count :])
    # The comparisons are written so that NaN fails them.
    if not ((schedule_features >= 0) & (schedule_features <= MAX_SCHEDULE_FEATURE)).all():
        raise ValueError("it has a schedule feature outside 0 to 1e14; its computation must have overflowed")
    if not ((pipeline_features >= 0) & np.isfinite(pipeline_features)).all():
        raise ValueError("it has a pipeline feature that is negative or not finite")
    for array in (schedule_features, pipeline_features):
        array.flags.writeable = False
    return Featurization(schedule_features, pipeline_features)


def format_featurization(featurization: Featurization) -> bytes:
    """The bytes of the `.featurization` file that holds these features."""
    rows = np.hstack([featurization.schedule_features, featurization.pipeline_features])
    return rows.astype("<f4").tobytes()


def uses_float(featurization: Featurization) -> bool:
    """Whether any operation of the pipeline is of type Float or Double (16-bit floats count as Float)."""
    histogram = featurization.pipeline_features[:, TYPE_COUNT : TYPE_COUNT * (1 + OPERATION_COUNT)]
    by_type = histogram.reshape(featurization.stages, OPERATION_COUNT, TYPE_COUNT)
    return bool(by_type[:, :, 5:].any())
