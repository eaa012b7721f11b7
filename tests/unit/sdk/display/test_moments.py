"""Times for people."""

from __future__ import annotations

import datetime

import pytest

from sdk.display.moments import iso_text, moment_text, short_duration_text


@pytest.mark.parametrize(
    ("duration_s", "text"),
    [
        (-1, "0 s"),
        (59.4, "59 s"),
        (60, "1 min"),
        (3599, "59 min"),
        (7500, "2 h 5 min"),
        (7200, "2 h"),
        (93600, "1 d 2 h"),
    ],
)
def test_durations(duration_s: float, text: str) -> None:
    assert short_duration_text(duration_s) == text


def test_moments() -> None:
    moment = datetime.datetime(2026, 11, 21, 16, 35)
    unix_s = moment.timestamp()
    assert moment_text(unix_s, now=moment) == "16:35"
    assert moment_text(unix_s, now=moment + datetime.timedelta(days=1)) == "2026-11-21 16:35"
    assert iso_text(0.0) == "1970-01-01T00:00:00+00:00"
