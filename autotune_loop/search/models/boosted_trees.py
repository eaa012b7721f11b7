"""A model of lowered schedules: boosted trees over what their loop nests do, several of them for what is not known.

AutoTVM's model of gradient boosted trees over context relation features (Chen et al., Learning to Optimize Tensor
Programs, 2018, section 3), with LightGBM (Ke et al. 2017) for XGBoost, and with its loss of ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from halide_autotune.autotune_loop.gaussian_process import Array, clipped_log_times, fewer
from halide_autotune.autotune_loop.lowered.features import NestFeatures
from halide_autotune.autotune_loop.search.models.ensemble import bagged, ensemble_of
from halide_autotune.autotune_loop.search.models.expectation import Expectation
from halide_autotune.autotune_loop.search.models.nest_prior import NestPrior
from halide_autotune.targets.errors import UsageError

# The same samples give the same trees; and all but one core are for building and timing.
_REPEATABLE = {"deterministic": True, "force_col_wise": True, "num_threads": 1, "verbosity": -1}
# Each learns from another draw of the samples.
_MEMBERS = 5
_ROUNDS, _GRADES = 100, 32
_PARAMETERS = {"num_leaves": 8, "min_data_in_leaf": 3, "learning_rate": 0.1, "feature_fraction": 0.7}
# Work on ranks grows with the square of the samples: 0.3 s for each member.
_MOST_SAMPLES = 512


class BoostedTrees:
    """Says which of several lowered schedules to time.

    Args:
        timed: the features of each schedule that was timed.
        times_ms: of each; at least two.
        prior: what other pipelines say: a feature among the others, so that it counts as far as it is right.
        uses_ranks: whether the trees learn which schedule is faster (LambdaMART), or the times themselves.

    Raises:
        UsageError: LightGBM is not there.
    """

    def __init__(
        self,
        timed: Sequence[NestFeatures],
        times_ms: Sequence[float],
        prior: NestPrior | None = None,
        *,
        uses_ranks: bool = True,
    ) -> None:
        logs = clipped_log_times(times_ms)
        kept = fewer(logs, _MOST_SAMPLES)
        rows, logs = np.array([timed[place] for place in kept], dtype=np.float64), logs[kept]
        self._prior, self._center = prior, rows.mean(axis=0)
        known, draws = self._known(rows), bagged(_MEMBERS, len(rows), seed=len(rows))
        train = _ranking_trees if uses_ranks else _regression_trees
        drawn = [np.repeat(np.arange(len(rows)), each) for each in draws]
        self._members = [train(known[places], logs[places], seed) for seed, places in enumerate(drawn)]
        self._ensemble = ensemble_of(self._scores(rows), logs, rows, draws)

    def expectation(self, schedules: Sequence[NestFeatures]) -> Expectation:
        """What is expected of schedules: the members' mean, and how much they differ."""
        rows = np.array(schedules, dtype=np.float64).reshape(len(schedules), len(self._center))
        scores = self._scores(rows) if len(rows) else np.zeros((_MEMBERS, 0))
        return self._ensemble.expectation(scores, schedules)

    def _known(self, rows: Array) -> Array:
        if self._prior is None:
            return rows
        return np.column_stack([rows, self._prior.expected(rows, self._center)])

    def _scores(self, rows: Array) -> Array:
        known = self._known(rows)
        return np.array([each.predict(known, num_threads=1) for each in self._members])


def _ranking_trees(rows: Array, logs: Array, seed: int) -> Any:
    """Trees whose scores are higher for faster schedules."""
    lightgbm = load_lightgbm()
    places = np.argsort(np.argsort(logs, kind="stable"), kind="stable")
    # The fastest has the highest.
    grades = (_GRADES - 1) - (_GRADES - 1) * places // max(1, len(logs) - 1)
    asked = {"objective": "lambdarank", "label_gain": [*range(_GRADES)], "lambdarank_truncation_level": len(logs)}
    data = lightgbm.Dataset(rows, grades, group=[len(rows)])
    return lightgbm.train({**_PARAMETERS, **_REPEATABLE, **asked, "seed": seed}, data, _ROUNDS)


def _regression_trees(rows: Array, logs: Array, seed: int) -> Any:
    lightgbm = load_lightgbm()
    data = lightgbm.Dataset(rows, logs)
    return lightgbm.train({**_PARAMETERS, **_REPEATABLE, "objective": "regression", "seed": seed}, data, _ROUNDS)


def load_lightgbm() -> Any:
    """The package.

    Raises:
        UsageError: it cannot be loaded.
    """
    try:
        import lightgbm
    except (ImportError, OSError) as error:  # the second one if the system has no libgomp
        raise UsageError(
            f"LightGBM cannot be loaded, which boosted trees need: {error}.",
            next_step="Install it with: pip install lightgbm (on Debian it needs libgomp1), or leave out --model.",
        ) from error
    return lightgbm
