"""Times of several boards, or of one board before and after, brought to one scale."""

from __future__ import annotations

import threading

from autotune_loop.run_database import RunDatabase
from autotune_loop.timing import Timing
from devices.measurement import Measurement


class Calibration:
    """For each device and era a factor: the reference's time on the run's first device over its time there.

    The first one that times the reference sets the scale, for as long as the run folder lives.
    """

    def __init__(self, database: RunDatabase) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._factors: dict[tuple[int, str, str], float] = {}
        self._scale_ms: dict[int, float] = {}
        for row in database.calibrations():
            self._scale_ms.setdefault(row.argset_index, row.reference_ms)
            self._factors[(row.argset_index, row.device, row.era)] = row.factor

    def factor(self, argset_index: int, timing: Timing) -> float:
        """What the times of a timing are multiplied with; 1 where there is no reference to tell."""
        reference = timing.reference
        if reference is None or not timing.era:
            return 1.0
        with self._lock:
            return self._factor(argset_index, timing.era, reference)

    def _factor(self, argset_index: int, era: str, reference: Measurement) -> float:
        key = (argset_index, reference.device, era)
        if key not in self._factors:
            reference_ms = reference.median_s * 1e3
            scale_ms = self._scale_ms.setdefault(argset_index, reference_ms)
            self._factors[key] = scale_ms / reference_ms
            self._database.add_calibration(
                argset_index, reference.device, era, reference_ms, reference.spread_s * 1e3, self._factors[key]
            )
        return self._factors[key]
