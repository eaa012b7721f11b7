"""Points and lengths of time as a person reads them, and as machines do."""

from __future__ import annotations

import datetime


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
