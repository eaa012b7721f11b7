"""The networks of Halide's two learned cost models."""

from __future__ import annotations

from enum import StrEnum


class Network(StrEnum):
    """A cost-model network of Halide, named after its autoscheduler.

    Both have the same layers; only the number of schedule features differs.
    """

    ADAMS2019 = "Adams2019"
    ANDERSON2021 = "Anderson2021"

    @property
    def schedule_feature_count(self) -> int:
        """Schedule features of one pipeline stage (`NetworkSize.h`: head2_w)."""
        return 39 if self is Network.ADAMS2019 else 73
