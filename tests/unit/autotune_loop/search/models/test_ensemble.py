"""Members of an ensemble say together what they expect, and how sure they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from halide_autotune.autotune_loop.search.models.ensemble import bagged, ensemble_of

LOGS = np.linspace(0.0, 1.0, 40)
ROWS = np.stack([np.linspace(5.0, 9.0, 40), np.linspace(3.0, 1.0, 40)], axis=1)


def test_members_learn_from_as_many_schedules_each_from_other_ones() -> None:
    draws = bagged(5, 40, seed=3)
    assert (draws.sum(axis=1) == 40).all() and (draws == bagged(5, 40, seed=3)).all()
    assert len({tuple(each) for each in draws}) == 5
    assert 0.25 < (draws == 0).mean() < 0.5


def test_scores_of_any_unit_become_logarithms_of_times() -> None:
    ensemble = ensemble_of(np.stack([300.0 - 7.0 * LOGS, 2.0 * LOGS]), LOGS, ROWS, bagged(2, 40, seed=1))
    expected = ensemble.expectation(np.array([[300.0, 293.0], [0.0, 2.0]]), [(5.0, 3.0), (9.0, 1.0)])
    assert expected.means == pytest.approx([0.0, 1.0]) and expected.best == pytest.approx(0.0)


def test_they_are_as_unsure_as_they_are_off_on_what_they_have_not_learnt_from() -> None:
    draws = bagged(4, 40, seed=1)
    chance = np.random.default_rng(0)
    differ = 0.01 * chance.normal(size=(4, 40))
    off = np.where(draws == 0, 0.3 * chance.choice([-1.0, 1.0], 40), 0.0)
    asked = LOGS[:3] + differ[:, :3], [tuple(row) for row in ROWS[:3]]
    known, by_heart = (ensemble_of(LOGS + each, LOGS, ROWS, draws) for each in (differ, off))
    assert known.unsure < 1.5 < by_heart.unsure
    as_they_differ = replace(by_heart, unsure=1.0).expectation(*asked).deviations
    assert by_heart.expectation(*asked).deviations == pytest.approx(by_heart.unsure * as_they_differ)


def test_where_nothing_can_be_told_of_them_they_are_taken_as_they_are() -> None:
    every = np.ones((2, 40), dtype=np.int64)
    scores = np.stack([LOGS, LOGS + 0.1 * np.sin(np.arange(40))])
    assert ensemble_of(scores, LOGS, ROWS, every).unsure == 1.0
    assert ensemble_of(np.stack([LOGS, LOGS]), LOGS, ROWS, bagged(2, 40, seed=1)).unsure == 1.0
