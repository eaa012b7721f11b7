"""Why a schedule of a run has no time."""

from __future__ import annotations

from dataclasses import dataclass

from halide_autotune.autotune_loop.store.published import NoDefault
from halide_autotune.devices.timing.measurement import MeasureFailureReason

# The newest failure of a kernel.
FAILURE_SQL = "SELECT stage, reason, message FROM failures WHERE symbol=? ORDER BY rowid DESC LIMIT 1"
_WHAT = {
    "search": "its search failed",
    "build": "it could not be built",
    "link": "it could not be linked",
    "measure": "it failed when it was timed",
    "race": "it failed when it was timed again",
    "interrupted": "the run ended before",
}
_NOT_ITS_OWN = (MeasureFailureReason.DEVICE.value, MeasureFailureReason.STOPPED.value)


@dataclass(frozen=True)
class KernelFailure:
    """A failure of a schedule, or of the search that was to find it.

    Attributes:
        stage, reason, message: see `RunDatabase.add_failure`.
    """

    stage: str
    reason: str
    message: str

    @property
    def is_its_own(self) -> bool:
        """Whether the schedule itself failed when it was timed, as it would again."""
        return self.stage in ("measure", "race") and self.reason not in _NOT_ITS_OWN

    @property
    def may_pass(self) -> bool:
        """Whether a device, or the end of the run, was in its way."""
        return self.reason in _NOT_ITS_OWN

    @property
    def of_default(self) -> NoDefault:
        """Why the default has no time, if it is the default's."""
        return NoDefault(f"{_WHAT.get(self.stage, self.stage)} ({self.reason})", self.message)
