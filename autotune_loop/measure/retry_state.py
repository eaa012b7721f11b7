"""A schedule to be timed, over several tries and devices if needed."""

from __future__ import annotations

from dataclasses import dataclass, field

from halide_autotune.autotune_loop.execute.device_session import ReferenceRun
from halide_autotune.devices.timing.measure_settings import Tolerance
from halide_autotune.targets.build.executable import Executable

# A schedule that took this many devices down is not timed again.
KILLS_ALLOWED = 2


@dataclass(frozen=True)
class MeasureJob:
    """One schedule to be checked and timed.

    Attributes:
        reference: what its output is compared with; None for no comparison.
        device: the only device that may time it; None for any.
    """

    executable: Executable
    symbol: str
    task_index: int
    reference: ReferenceRun | None
    tolerance: Tolerance
    device: str | None = None


@dataclass
class RetryState:
    """A job and its tries so far.

    Attributes:
        tries: how often it was handed out.
        kills: how many devices it took down.
        lost_on: devices that were lost while they timed it and are not back yet → their boot then.
        avoid: the device on which it failed last.
    """

    job: MeasureJob
    tries: int = 0
    kills: int = 0
    lost_on: dict[str, str] = field(default_factory=dict)
    avoid: str | None = None

    @property
    def is_killer(self) -> bool:
        """Whether it took down so many devices that it is not timed again."""
        return self.kills >= KILLS_ALLOWED

    @property
    def is_suspect(self) -> bool:
        """Whether to keep it back until the devices that it was lost on are back or given up."""
        return self.kills + len(self.lost_on) >= KILLS_ALLOWED

    def verdict(self, device: str, boot: str | None) -> None:
        """Record that a lost device is back, in this boot, or never came back: None."""
        self.kills += int(self.lost_on.pop(device) != boot)
