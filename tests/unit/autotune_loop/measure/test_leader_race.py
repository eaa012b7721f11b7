"""The best of many single timings is the luckiest; the race takes luck out."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import replace

import pytest

from halide_autotune.autotune_loop.candidate import Measured
from halide_autotune.autotune_loop.measure.leader_race import MOST_LEADERS, TURNS, LeaderRace
from halide_autotune.autotune_loop.run_scale import PROCESS_NOISE
from tests.measured_candidates import measured


def leader(symbol: str, time_ms: float, *, is_disturbed: bool = False) -> Measured:
    one = measured(time_ms)
    return replace(one, candidate=replace(one.candidate, symbol=symbol), is_relative=True, is_disturbed=is_disturbed)


def leaders(first_ms: Mapping[str, float]) -> list[Measured]:
    return [leader(symbol, time_ms) for symbol, time_ms in first_ms.items()]


def run(race: LeaderRace, true_ms: dict[str, float], noise: float, seed: int = 0) -> list[str]:
    """Time whoever the race asks for, until it asks for nobody; returns the symbols in the order of their timings."""
    chance = random.Random(seed)
    order: list[str] = []
    while turn := race.next_turn():
        order += turn
        for symbol in turn:
            race.add(symbol, leader(symbol, true_ms[symbol] * math.exp(chance.gauss(0, noise))))
        assert len(order) < 1000, "it does not end"
    return order


def test_what_is_clearly_slower_is_not_timed_again() -> None:
    first_ms = {"best": 1.0, "close": 1.0 + PROCESS_NOISE / 2, "slow": 1.3}
    order = run(LeaderRace(leaders(first_ms), math.inf, 0), first_ms, 0.0)
    assert {symbol: order.count(symbol) for symbol in first_ms} == {"best": TURNS, "close": TURNS, "slow": 0}


def test_what_cannot_beat_the_best_known_is_not_timed_again() -> None:
    assert not LeaderRace(leaders({"a": 1.2, "b": 1.25}), 1.0, 0).next_turn()
    assert LeaderRace(leaders({"a": 0.8}), 1.0, 0).next_turn() == ["a"]


def test_never_more_leaders_than_can_be_afforded() -> None:
    race = LeaderRace(leaders({str(number): 1.0 for number in range(40)}), math.inf, 0)
    assert len(race.next_turn()) == MOST_LEADERS


def test_a_lucky_time_is_taken_back_and_those_behind_it_get_their_chance() -> None:
    """One that seemed far ahead is not; then those that are faster than it really is are timed, and it no longer is."""
    race = LeaderRace(leaders({"lucky": 0.7, "solid": 1.0}), math.inf, 0)
    assert race.next_turn() == ["lucky"]
    order = run(race, {"lucky": 1.1, "solid": 1.0}, 0.0)
    assert order.count("solid") == TURNS
    settled = race.settled()
    assert {symbol: processes for symbol, (_, processes) in settled.items()} == {"lucky": 1, "solid": TURNS}
    assert {symbol: time_ms for symbol, (time_ms, _) in settled.items()} == pytest.approx({"lucky": 1.1, "solid": 1.0})


def test_a_disturbed_time_counts_for_little_so_that_it_is_taken_again() -> None:
    first = [leader("sound", 1.0), leader("unsound", 1.5, is_disturbed=True), leader("slow", 1.1)]
    assert set(LeaderRace(first, math.inf, 0).next_turn()) == {"sound", "unsound"}


def test_one_that_fails_is_out() -> None:
    race = LeaderRace(leaders({"crashes": 0.5, "solid": 1.0}), math.inf, 0)
    race.add("crashes", None)
    assert race.next_turn() == ["solid"]
    assert "crashes" not in race.settled()


def test_one_that_seemed_fast_while_the_machine_was_loaded_is_timed_again() -> None:
    first = [leader("lucky", 0.7, is_disturbed=True), leader("solid", 1.0)]
    race = LeaderRace(first, math.inf, 0)
    assert race.next_turn() == ["lucky"]
    order = run(race, {"lucky": 1.3, "solid": 1.0}, 0.0)
    assert order.count("lucky") == 1 and order.count("solid") == TURNS
    assert race.settled()["lucky"] == (pytest.approx(1.3), 1)


def test_disturbed_timings_do_not_count_and_the_race_ends_all_the_same() -> None:
    race = LeaderRace(leaders({"only": 1.0}), math.inf, 0)
    timings = 0
    while race.next_turn():
        race.add("only", leader("only", 0.5, is_disturbed=True))
        timings += 1
        assert timings < 100, "it does not end"
    assert timings > TURNS and race.settled() == {}


def test_the_winner_is_right_more_often_than_by_single_times_and_its_time_is_not_flattered() -> None:
    chance = random.Random(1)
    errors_alone, errors_raced, flattery_alone, flattery_raced = [], [], [], []
    for seed in range(200):
        true_ms = {str(number): chance.uniform(1.0, 1.5) for number in range(30)}
        first_ms = {s: ms * math.exp(chance.gauss(0, PROCESS_NOISE)) for s, ms in true_ms.items()}
        race = LeaderRace(leaders(first_ms), math.inf, seed)
        run(race, true_ms, PROCESS_NOISE, seed)
        raced_ms = {symbol: ms for symbol, (ms, _) in race.settled().items()}
        alone, raced = min(first_ms, key=first_ms.__getitem__), min(raced_ms, key=raced_ms.__getitem__)
        errors_alone.append(math.log(true_ms[alone] / min(true_ms.values())))
        errors_raced.append(math.log(true_ms[raced] / min(true_ms.values())))
        flattery_alone.append(math.log(first_ms[alone] / true_ms[alone]))
        flattery_raced.append(math.log(raced_ms[raced] / true_ms[raced]))
    assert sum(errors_raced) < 0.75 * sum(errors_alone)
    assert abs(sum(flattery_raced)) < 0.5 * abs(sum(flattery_alone))
