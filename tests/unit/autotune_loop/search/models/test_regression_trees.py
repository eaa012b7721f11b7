"""Trees as arrays say what LightGBM says, and what is read is checked: a file may come from anybody."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from halide_autotune.autotune_loop.search.models.regression_trees import RegressionTrees, fit_trees, read_trees

FEATURES = 6


@pytest.fixture(scope="module")
def known() -> tuple[Any, Any]:
    chance = np.random.default_rng(0)
    rows = chance.normal(size=(300, FEATURES))
    return rows, np.where(rows[:, 0] > 0, rows[:, 1], -rows[:, 2])


@pytest.fixture(scope="module")
def trees(known: tuple[Any, Any]) -> RegressionTrees:
    return fit_trees(*known)


def test_they_say_what_lightgbm_says(
    known: tuple[Any, Any], trees: RegressionTrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    boosters, train = [], lightgbm.train

    def kept(*given: Any) -> Any:
        boosters.append(train(*given))
        return boosters[-1]

    monkeypatch.setattr(lightgbm, "train", kept)
    again, new = fit_trees(*known), np.random.default_rng(1).normal(size=(50, FEATURES))
    np.testing.assert_allclose(again.predict(new), boosters[0].predict(new), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(again.predict(new), trees.predict(new), "equal samples give equal trees")
    rows, targets = known
    assert np.corrcoef(trees.predict(rows), targets)[0, 1] > 0.95


def test_few_samples_have_trees_without_a_decision() -> None:
    few = fit_trees(np.zeros((3, FEATURES)), np.array([1.0, 2.0, 6.0]))
    np.testing.assert_allclose(few.predict(np.ones((2, FEATURES))), 3.0)
    assert few.predict(np.zeros((0, FEATURES))).shape == (0,)


def test_what_is_written_reads_back(known: tuple[Any, Any], trees: RegressionTrees) -> None:
    again = read_trees(trees.arrays(), FEATURES)
    assert again is not None
    np.testing.assert_array_equal(again.predict(known[0]), trees.predict(known[0]))
    assert read_trees({"rows": known[0]}, FEATURES) is None


@given(st.data())
def test_damaged_arrays_are_told_or_end(trees: RegressionTrees, data: st.DataObject) -> None:
    told = trees.arrays()
    name = data.draw(st.sampled_from([*told]))
    kinds = st.sampled_from([np.int8, np.int16, np.float64])
    shapes = arrays.array_shapes(min_dims=0, max_dims=3, max_side=4)
    told[name] = data.draw(st.one_of(kinds.flatmap(lambda kind: arrays.arrays(kind, shapes)), _changed(told[name])))
    try:
        found = read_trees(told, FEATURES)
    except ValueError:
        return
    assert found is not None and np.isfinite(found.predict(np.zeros((2, FEATURES)))).all()


def _changed(array: Any) -> st.SearchStrategy[Any]:
    def put(place: int, value: int) -> Any:
        changed = array.copy()
        changed.flat[place] = value
        return changed

    return st.builds(put, st.integers(0, array.size - 1), st.integers(-128, 127))
