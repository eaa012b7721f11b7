"""Numbers as people read them, in plain ASCII, which every terminal and log can show."""

from __future__ import annotations

import datetime

_ROUNDED_TO_ONE_SECOND_S = 10.0


def time_text(time_ms: float, clock_mark: str = "") -> str:
    """Return a kernel's time to four digits in a suitable unit, then the mark of its clock.

    Args:
        clock_mark: such as ' sim', from `Clock.mark`; empty for real time.
    """
    if time_ms >= 1e3:
        return f"{_digits(time_ms / 1e3)} s{clock_mark}"
    if time_ms >= 0.1:
        return f"{_digits(time_ms)} ms{clock_mark}"
    return f"{_digits(time_ms * 1e3)} us{clock_mark}"


def range_text(range_ms: tuple[float, float]) -> str:
    """Return what times to expect, as '3.1 ms to 3.4 ms'."""
    return f"{time_text(range_ms[0])} to {time_text(range_ms[1])}"


def _digits(value: float) -> str:
    """Four significant digits, without an exponent."""
    return f"{value:.0f}" if value >= 1e3 else f"{value:#.4g}".rstrip(".")


def duration_text(duration_s: float) -> str:
    """'4.2 s', '0:42', '3:07' or '1:02:03'."""
    if duration_s < _ROUNDED_TO_ONE_SECOND_S:
        return f"{duration_s:.1f} s"
    return clock_text(duration_s)


def clock_text(duration_s: float) -> str:
    """Always with a colon: '0:04', '3:07', '1:02:03'."""
    minutes, seconds = divmod(int(duration_s), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def speed_up_text(speed_up: float) -> str:
    """'2.17 times as fast'."""
    return f"{speed_up:.2f} times as fast"


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


def short_duration_text(duration_s: float) -> str:
    """'45 s', '12 min', '2 h 5 min' or '3 d 4 h'."""
    seconds = max(0, round(duration_s))
    if seconds < 60:
        return f"{seconds} s"
    minutes = seconds // 60
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h" + (f" {minutes} min" if minutes else "")
    days, hours = divmod(hours, 24)
    return f"{days} d" + (f" {hours} h" if hours else "")
