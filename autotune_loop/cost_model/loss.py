"""What a training makes small."""

from __future__ import annotations

from enum import StrEnum


class Loss(StrEnum):
    """The losses to choose from."""

    RELATIVE_THROUGHPUT = "relative_throughput"
    """Halide's: squared error of the throughput relative to the fastest schedule of the pipeline."""
    RANK = "rank"
    """AutoTVM's: the logistic loss of pairs on the logarithm of the predicted cost. The order is learnt, the
    scale is
    not: predictions are then no longer milliseconds."""
