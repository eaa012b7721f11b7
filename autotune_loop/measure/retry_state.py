"""A schedule on its way to a time, over as many devices and tries as it takes."""

from __future__ import annotations

from dataclasses import dataclass, field

from autotune_loop.execute.device_session import ReferenceRun
from devices.timing.measure_settings import Tolerance
from targets.build.executable import Executable

# A schedule that took so many devices down is not given another one.
KILLS_ALLOWED = 2


@dataclass(frozen=True)
class MeasureJob:
    """One schedule to be checked and timed.

    Attributes:
        reference: what its output is compared with; None compares nothing.
        device: where it must be timed; None leaves it to the dispatcher.
    """

    executable: Executable
    symbol: str
    task_index: int
    reference: ReferenceRun | None
    tolerance: Tolerance
    device: str | None = None


@dataclass
class RetryState:
    """A job, and what has become of it so far.

    Attributes:
        tries: how often it was handed out.
        kills: devices that it has taken down.
        lost_on: devices that were lost under it and have not been heard of since, with their boot before.
        avoid: where it failed last.
    """

    job: MeasureJob
    tries: int = 0
    kills: int = 0
    lost_on: dict[str, str] = field(default_factory=dict)
    avoid: str | None = None

    @property
    def is_killer(self) -> bool:
        """Whether it has taken down as many devices as it is given."""
        return self.kills >= KILLS_ALLOWED

    @property
    def is_suspect(self) -> bool:
        """Whether it must not be handed out before it is known what became of the devices it was lost on."""
        return self.kills + len(self.lost_on) >= KILLS_ALLOWED

    def verdict(self, device: str, boot: str | None) -> None:
        """A device that was lost under it is back, in the same boot or another one; or it never came back: None."""
        self.kills += int(self.lost_on.pop(device) != boot)
