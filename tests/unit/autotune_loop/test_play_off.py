"""Who wins a play-off on several devices."""

from __future__ import annotations

import pytest

from autotune_loop.play_off import _ranking


def test_on_one_device_the_fastest_median_wins() -> None:
    ranking = _ranking(["default", "a", "b"], {"pi": {"default": [2.0, 2.2], "a": [1.0, 9.0], "b": [1.5, 1.5]}})
    assert [time.symbol for time in ranking] == ["b", "default", "a"]
    assert ranking[0].median_ms == pytest.approx(1500) and ranking[0].score == pytest.approx(1.5 / 2.1)


def test_on_several_devices_the_mean_of_the_ratios_decides() -> None:
    # On the first board 'a' is a little faster; on the second, much slower than the default.
    turns_s = {
        "pi": {"default": [1.0], "a": [0.8], "b": [0.85]},
        "pi-b": {"default": [10.0], "a": [14.0], "b": [8.5]},
    }
    ranking = _ranking(["default", "a", "b"], turns_s)
    assert [time.symbol for time in ranking] == ["b", "default", "a"]
    assert ranking[0].by_device == {"pi": pytest.approx(850), "pi-b": pytest.approx(8500)}
    assert ranking[0].median_ms == pytest.approx(850), "the first device's time is told"


def test_a_device_that_did_not_time_all_does_not_count() -> None:
    turns_s = {"pi": {"default": [1.0]}, "pi-b": {"default": [4.0], "a": [3.0]}}
    ranking = _ranking(["default", "a"], turns_s)
    assert ranking[0].symbol == "a" and ranking[0].by_device == {"pi-b": pytest.approx(3000)}


def test_without_a_device_or_a_contender_nobody_wins() -> None:
    assert _ranking(["default"], {}) == [] and _ranking([], {"pi": {}}) == []
