"""What a check finds about one committed schedule."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import Enum

from halide_autotune.autotune_loop.store.published import SpeedUp
from halide_autotune.devices.device import Clock


class GateVerdict(Enum):
    """Whether a schedule may stay in use, the worst first; `exit_code` is that of the command."""

    WRONG = "wrong"
    STALE = "stale"
    SLOWER = "slower"
    NO_DEVICE = "no device"
    UNDECIDED = "undecided"
    KEPT = "ok"
    NOT_TIMED = "not timed"

    @property
    def exit_code(self) -> int:
        """0 for what need not fail."""
        return _EXIT_CODES.get(self, 0)


_EXIT_CODES = {
    GateVerdict.WRONG: 3,
    GateVerdict.STALE: 4,
    GateVerdict.SLOWER: 5,
    GateVerdict.UNDECIDED: 6,
    GateVerdict.NO_DEVICE: 7,
}


@dataclass(frozen=True)
class CheckedSchedule:
    """One schedule on one device.

    Attributes:
        header: the name of its file.
        target: the profile that it was tuned for.
        device: where it was timed; empty if it was not.
        message: why, in a sentence; empty if all is well.
        promised: how many times as fast as the default (a size's own schedule, as that for all sizes) the header says
            it is; None if it does not.
        speed_up: the same now; None if it was not timed beside the other.
        shipped_ms, now_ms: its time when it was shipped, and now.
        clock: of `now_ms`; empty without it.
    """

    header: str
    target: str
    verdict: GateVerdict
    message: str = ""
    device: str = ""
    promised: float | None = None
    speed_up: SpeedUp | None = None
    shipped_ms: float | None = None
    now_ms: float | None = None
    clock: str = ""

    @property
    def clock_mark(self) -> str:
        """What follows a time that is not a device's, such as ' sim'."""
        return Clock(self.clock).mark if self.clock else ""

    def to_dict(self) -> dict[str, object]:
        """Return it as JSON values."""
        return {**asdict(self), "verdict": self.verdict.value}


@dataclass(frozen=True)
class GateResult:
    """What a check finds about a folder.

    Attributes:
        schedules: one for each schedule and device.
        problems: of files that belong to no schedule; each makes the folder stale.
        notes: what could not be checked, and need not fail.
    """

    schedules: tuple[CheckedSchedule, ...]
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> GateVerdict:
        """The worst."""
        found = {one.verdict for one in self.schedules} | ({GateVerdict.STALE} if self.problems else set())
        return _worst(found)

    def to_dict(self) -> dict[str, object]:
        """Return it as JSON values."""
        return {
            "verdict": self.verdict.value,
            "schedules": [one.to_dict() for one in self.schedules],
            "problems": list(self.problems),
            "notes": list(self.notes),
        }


def _worst(verdicts: Iterable[GateVerdict]) -> GateVerdict:
    order = list(GateVerdict)
    return min(verdicts, key=order.index, default=GateVerdict.KEPT)
