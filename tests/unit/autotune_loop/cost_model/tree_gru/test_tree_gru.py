"""Networks that walk loops: what they are given, what they learn, and that NumPy computes what was trained."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from halide_autotune.autotune_loop.cost_model.tree_gru.loop_paths import loop_paths
from halide_autotune.autotune_loop.cost_model.tree_gru.training import (
    TreeGruProblem,
    graph_inputs,
    graph_scores,
    train_tree_gru,
)
from halide_autotune.autotune_loop.cost_model.tree_gru.weights import random_weights, tree_gru_scores
from halide_autotune.autotune_loop.lowered.loop_rows import LOOP_ROW_NAMES
from tests.unit.autotune_loop.cost_model.tree_gru.timed_nests import timed_nest


def drawn(count: int) -> npt.NDArray[np.int64]:
    """Four members; each learns from three of four schedules."""
    return np.array([np.arange(count) % 4 != member for member in range(4)], dtype=np.int64)


def test_what_schedules_have_in_common_is_there_once() -> None:
    schedules = [timed_nest(seed)[0] for seed in range(60)]
    paths = loop_paths(schedules)
    assert paths.schedules == 60
    assert len(paths.rows[0]) == 1 and len(paths.parents) == len(paths.rows) == 4, "they have the root in common"
    assert sum(map(len, paths.rows)) < 30 < sum(len(each.rows) for each in schedules)
    every = np.concatenate(paths.rows)
    for owner, each in enumerate(schedules):
        places = paths.owners == owner
        held = np.repeat(every[paths.loops[places]], paths.counts[places].astype(int), axis=0)
        assert sorted(map(tuple, held)) == sorted(map(tuple, each.rows))


def test_a_loop_costs_what_it_computes_before_anything_is_learnt() -> None:
    rows, _ = timed_nest(3)
    weights = random_weights(members=3, seed=0)
    scores = tree_gru_scores(weights, loop_paths([rows]), np.zeros(1))
    work = rows.rows[:, LOOP_ROW_NAMES.index("operations on the critical path")]
    expected = np.log(np.exp(work * 8 * np.log(2)).sum())
    assert scores.shape == (3, 1) and np.abs(scores - expected).max() < 0.7


@pytest.mark.toolchain
@pytest.mark.usefixtures("tensorflow_ready")
@pytest.mark.parametrize("uses_ranks", [True, False])
def test_they_learn_what_follows_from_the_loops_around(uses_ranks: bool) -> None:
    known, unseen = [timed_nest(seed) for seed in range(100)], [timed_nest(1000 + seed) for seed in range(60)]
    logs = np.array([log for _, log in known])
    nothing = np.zeros(100)
    problem = TreeGruProblem(loop_paths([rows for rows, _ in known]), logs, nothing, drawn(100), uses_ranks, seed=1)
    weights = train_tree_gru(problem)
    again = train_tree_gru(problem).tensors()
    assert all((one == other).all() for one, other in zip(weights.tensors(), again, strict=True))
    said = tree_gru_scores(weights, loop_paths([rows for rows, _ in unseen]), np.zeros(60)).mean(axis=0)
    times = np.array([log for _, log in unseen])
    pairs = [(i, j) for i in range(60) for j in range(i) if abs(times[i] - times[j]) > 0.1]
    right = float(np.mean([(said[i] < said[j]) == (times[i] < times[j]) for i, j in pairs]))
    start = tree_gru_scores(random_weights(4, 1), loop_paths([rows for rows, _ in unseen]), np.zeros(60)).mean(axis=0)
    before = float(np.mean([(start[i] < start[j]) == (times[i] < times[j]) for i, j in pairs]))
    assert right > 0.9 and right > before + 0.05


@pytest.mark.toolchain
@pytest.mark.usefixtures("tensorflow_ready")
def test_what_others_say_is_taken_as_far_as_it_helps() -> None:
    known = [timed_nest(seed) for seed in range(60)]
    chance = np.random.default_rng(0)
    paths, logs = loop_paths([rows for rows, _ in known]), chance.normal(size=60)
    shares = [
        float(train_tree_gru(TreeGruProblem(paths, logs, foreseen, drawn(60), False, seed=1)).prior_share.mean())
        for foreseen in (logs, -logs)
    ]
    assert shares[0] > 0.5 > shares[1]


@pytest.mark.toolchain
@pytest.mark.usefixtures("tensorflow_ready")
def test_numpy_computes_what_tensorflow_trains() -> None:
    known = [timed_nest(seed) for seed in range(12)]
    paths, foreseen = loop_paths([rows for rows, _ in known]), np.linspace(-1, 1, 12)
    problem = TreeGruProblem(paths, np.array([log for _, log in known]), foreseen, drawn(12), True, seed=4)
    weights = random_weights(4, 4)
    said = graph_scores(weights.tensors(), graph_inputs(problem)).numpy()
    assert said == pytest.approx(tree_gru_scores(weights, paths, foreseen), abs=1e-4)
