"""A device in a run: its queue, its failures, and whether and since when it is out of service."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

from halide_autotune.devices.device_trouble import TroubleKind

_FIRST_CHECK_S = 0.5
_LONGEST_CHECK_S = 60.0
# Who waits for another user's lease takes the device soon after it is given back.
_LEASE_CHECK_S = 2.0
# After this many failures in a row a device is unhealthy, which is reported.
_UNHEALTHY_AFTER = 3
_MOST_AHEAD = 16
_NEWEST_SHARE = 0.2
# A device that comes back this often but times nothing, for example because its storage is full, counts as lost.
_FRUITLESS_RETURNS = 5


@dataclass
class DeviceQueue:
    """The schedules that a device has been given, and how many more it may get.

    Attributes:
        at_once: schedules that it times at once.
        ahead_s: device seconds of schedules that it may get ahead; above 0 if answers take a while.
        in_flight: schedules that it has.
        typical_s: seconds that a schedule holds it; 0 before the first.
    """

    at_once: int = 1
    ahead_s: float = 0.0
    in_flight: int = 0
    typical_s: float = 0.0

    @property
    def has_room(self) -> bool:
        """Whether it can take another schedule."""
        # One waits while others run: the device is never idle, and each still starts with the latest best time.
        least = self.at_once + 1
        ahead = least if self.typical_s <= 0 else math.ceil(self.ahead_s / self.typical_s) + 1
        return self.in_flight < max(min(ahead, _MOST_AHEAD), least)

    def held(self, held_s: float) -> None:
        """Record how long a schedule held it."""
        self.typical_s += (_NEWEST_SHARE if self.typical_s else 1.0) * (held_s - self.typical_s)


@dataclass
class DeviceState:
    """A device's place in the dispatcher.

    Attributes:
        queue: the schedules that it has.
        boot: identifies the time since it was switched on.
        failures: times in a row that it failed.
        out_since_s: monotonic time at which it went out of service; None while it is in service.
        next_check_s: monotonic time of the next check.
        checking: whether it is being checked.
        gone: whether it needs a person; it is not checked again.
        message: why it is out of service.
        is_proved: whether it has timed a schedule of this run.
    """

    name: str
    queue: DeviceQueue = field(default_factory=DeviceQueue)
    boot: str = ""
    failures: int = 0
    out_since_s: float | None = None
    next_check_s: float = 0.0
    checking: bool = False
    gone: bool = False
    message: str = ""
    is_proved: bool = False
    # When it first failed since it last timed a schedule, and how often it came back since then.
    _failing_since_s: float | None = None
    _fruitless_returns: int = 0

    @property
    def in_service(self) -> bool:
        """Whether it takes schedules."""
        return self.out_since_s is None

    @property
    def out_s(self) -> float:
        """Seconds that it has been out of service; 0 while it is in service."""
        return 0.0 if self.out_since_s is None else time.monotonic() - self.out_since_s

    def is_given_up(self, patience_s: float) -> bool:
        """Whether it was out of service for longer than that, or kept coming back without timing anything.

        A check under way counts from when it was due: if this process was suspended, its answer may already be there.
        """
        if self.in_service or self.gone:
            return self.gone
        fruitless = self._fruitless_returns >= _FRUITLESS_RETURNS and self._failing_since_s is not None
        since_s = self._failing_since_s if fruitless else self.out_since_s
        until_s = self.next_check_s if self.checking else time.monotonic()
        return since_s is not None and until_s - since_s > patience_s

    @property
    def is_unhealthy(self) -> bool:
        """Whether it fails again and again."""
        return self.failures >= _UNHEALTHY_AFTER or self.gone

    @property
    def is_awaited(self) -> bool:
        """Whether it answers, and someone else has it."""
        return not (self.in_service or self.failures)

    @property
    def is_due(self) -> bool:
        """Whether it is time to check it again."""
        return not (self.in_service or self.checking or self.gone) and time.monotonic() >= self.next_check_s

    def out_of_service(self, kind: TroubleKind, message: str) -> None:
        """Record a failure; the time until the next check grows with every failure, but not while it is leased."""
        self.message = message
        self.out_since_s = self.out_since_s or time.monotonic()
        self._failing_since_s = self._failing_since_s or time.monotonic()
        self.gone = kind.needs_a_person
        if kind is TroubleKind.LEASED:
            self.failures = 0
            self.next_check_s = time.monotonic() + _LEASE_CHECK_S
            return
        self.failures += 1
        self.next_check_s = time.monotonic() + min(_FIRST_CHECK_S * 2 ** (self.failures - 1), _LONGEST_CHECK_S)

    def back_in_service(self, boot: str) -> None:
        """Record that it answers again."""
        self.boot = boot
        self.out_since_s = None
        self._fruitless_returns += 1

    def proved(self) -> bool:
        """Record that it timed a schedule; True for the first time, or if it was unhealthy."""
        is_news = self.is_unhealthy or not self.is_proved
        self.is_proved = True
        self.failures = 0
        self._failing_since_s = None
        self._fruitless_returns = 0
        self.message = ""
        return is_news
