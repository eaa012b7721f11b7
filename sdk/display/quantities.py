"""Numbers as people read them, in plain ASCII, which every terminal and log can show."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable
from dataclasses import dataclass

_ROUNDED_TO_ONE_SECOND_S = 9.95


@dataclass(frozen=True)
class TimeUnit:
    """A unit of kernels' times.

    Attributes:
        name: 'us', 'ms' or 's'.
        in_ms: how many milliseconds it has.
    """

    name: str
    in_ms: float

    def text(self, time_ms: float, clock_mark: str = "") -> str:
        """Return a time to four digits, its unit, and the mark of its clock.

        Args:
            clock_mark: such as ' sim', from `Clock.mark`; empty for real time.
        """
        return f"{digits(time_ms / self.in_ms)} {self.name}{clock_mark}"


_UNITS = (TimeUnit("s", 1e3), TimeUnit("ms", 1.0), TimeUnit("us", 1e-3))


def unit_of(times_ms: Iterable[float | None]) -> TimeUnit:
    """Return the unit for times that stand below each other: that of the shortest; ms where there is none."""
    shortest_ms = min((time_ms for time_ms in times_ms if time_ms is not None), default=1.0)
    largest, middle, smallest = _UNITS
    return largest if shortest_ms >= 1e3 else middle if shortest_ms >= 0.1 else smallest


def time_text(time_ms: float, clock_mark: str = "") -> str:
    """Return a time that stands alone, in the unit that suits it; see `TimeUnit.text`."""
    return unit_of([time_ms]).text(time_ms, clock_mark)


def digits(value: float) -> str:
    """Four significant digits, without an exponent."""
    if value >= 1e3:
        return f"{value:.0f}"
    # Below that, Python's own format has an exponent.
    return f"{value:#.4g}".rstrip(".") if value >= 1e-4 else f"{value:.{3 - math.floor(math.log10(value))}f}"


def duration_text(duration_s: float) -> str:
    """'0 s', '4.2 s', '42 s', '3 min 7 s', '2 h 5 min' or '3 d 4 h'."""
    if 0.05 <= duration_s < _ROUNDED_TO_ONE_SECOND_S:
        return f"{duration_s:.1f} s"
    seconds = max(0, round(duration_s))
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return _both(f"{minutes} min", seconds, "s")
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return _both(f"{hours} h", minutes, "min")
    days, hours = divmod(hours, 24)
    return _both(f"{days} d", hours, "h")


def _both(larger: str, count: int, unit: str) -> str:
    return f"{larger} {count} {unit}" if count else larger


def speed_up_text(speed_up: float) -> str:
    """'2.17 times as fast'."""
    return f"{speed_up:.2f} times as fast"


def rate_text(per_minute: float) -> str:
    """'11/min', as schedules are timed."""
    return f"{per_minute:.0f}/min" if per_minute >= 1 else f"{per_minute:.1f}/min"


def count_text(count: int, singular: str) -> str:
    """'1 schedule', '2 schedules'."""
    return f"{count} {singular if count == 1 else singular + 's'}"


def share_text(share: float | None) -> str:
    """'73 %', or 'unknown'."""
    return "unknown" if share is None else f"{100 * share:.0f} %"


def moment_text(unix_s: float, now: datetime.datetime | None = None) -> str:
    """'16:35' today, else '2026-11-21 16:35'; in this machine's time zone."""
    moment = datetime.datetime.fromtimestamp(unix_s).astimezone()
    today = (now or datetime.datetime.now()).date()
    return moment.strftime("%H:%M" if moment.date() == today else "%Y-%m-%d %H:%M")


def iso_text(unix_s: float) -> str:
    """'2026-11-21T16:35:00+00:00', in UTC."""
    return datetime.datetime.fromtimestamp(unix_s, datetime.UTC).isoformat(timespec="seconds")
