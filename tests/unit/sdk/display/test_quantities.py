"""Numbers as a person reads them."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.sdk.display.quantities import (
    count_text,
    duration_text,
    iso_text,
    moment_text,
    rate_text,
    time_text,
    unit_of,
)


@pytest.mark.parametrize(
    ("time_ms", "expected"),
    [
        (0.00041, "0.4100 us"),
        (0.0999, "99.90 us"),
        (0.1, "0.1000 ms"),
        (7.16349, "7.163 ms"),
        (23.456, "23.46 ms"),
        (999.96, "1000 ms"),
        (1234.5, "1.234 s"),
        (123456.0, "123.5 s"),
        (123456789.0, "123457 s"),
    ],
)
def test_times(time_ms: float, expected: str) -> None:
    assert time_text(time_ms) == expected


def test_a_mark_follows_the_number() -> None:
    assert time_text(2.0, " emul") == "2.000 ms emul"


@given(st.floats(min_value=1e-4, max_value=1e7))
def test_a_time_reads_back_within_half_a_percent(time_ms: float) -> None:
    number, unit = time_text(time_ms).split()
    assert float(number) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[unit] == pytest.approx(time_ms, rel=5e-3)
    assert "e" not in number


@given(st.lists(st.floats(min_value=1e-4, max_value=1e7), min_size=1, max_size=8))
def test_times_below_each_other_have_one_unit_in_which_none_is_lost(times_ms: list[float]) -> None:
    unit = unit_of([None, *times_ms])
    texts = [unit.text(time_ms) for time_ms in times_ms]
    assert {text.split()[1] for text in texts} == {unit.name}
    for text, time_ms in zip(texts, times_ms, strict=True):
        assert float(text.split()[0]) * unit.in_ms == pytest.approx(time_ms, rel=5e-3)
        assert "e" not in text.split()[0]


def test_without_times_the_unit_is_ms() -> None:
    assert unit_of([]).name == unit_of([None]).name == "ms"


def test_rates() -> None:
    assert [rate_text(rate) for rate in (180.4, 11.0, 0.4)] == ["180/min", "11/min", "0.4/min"]


def test_counts() -> None:
    assert count_text(1, "schedule") == "1 schedule"
    assert count_text(0, "schedule") == "0 schedules"


@pytest.mark.parametrize(
    ("duration_s", "text"),
    [
        (-1, "0 s"),
        (0.25, "0.2 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.9, "1 min"),
        (60, "1 min"),
        (187, "3 min 7 s"),
        (3599, "59 min 59 s"),
        (7500, "2 h 5 min"),
        (7200, "2 h"),
        (93600, "1 d 2 h"),
    ],
)
def test_durations(duration_s: float, text: str) -> None:
    assert duration_text(duration_s) == text


def test_moments() -> None:
    moment = datetime.datetime(2026, 11, 21, 16, 35)
    unix_s = moment.timestamp()
    assert moment_text(unix_s, now=moment) == "16:35"
    assert moment_text(unix_s, now=moment + datetime.timedelta(days=1)) == "2026-11-21 16:35"
    assert iso_text(0.0) == "1970-01-01T00:00:00+00:00"
