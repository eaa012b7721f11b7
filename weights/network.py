"""Which of Halide's two learned cost models a file belongs to."""

from __future__ import annotations

from enum import StrEnum


class Network(StrEnum):
    """A cost-model network of Halide, named after the autoscheduler that uses it.

    Both have the same layers; they differ in how many features describe the schedule of one stage.
    """

    ADAMS2019 = "Adams2019"
    ANDERSON2021 = "Anderson2021"

    @property
    def schedule_feature_count(self) -> int:
        """Schedule features of one pipeline stage (`NetworkSize.h`: head2_w)."""
        return 39 if self is Network.ADAMS2019 else 73
