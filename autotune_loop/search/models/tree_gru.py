"""A model of lowered schedules: a network that walks their loops, several of them for what is not known.

After AutoTVM's TreeGRU (Chen et al., Learning to Optimize Tensor Programs, 2018, section 3.1 and appendix A). Here the
unit goes from the outermost loop inwards, so that what it makes of a loop depends on those around it, and what all the
loops of a schedule cost is added up, as time adds up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from halide_autotune.autotune_loop.cost_model.process.child_process import ModelProcessError
from halide_autotune.autotune_loop.cost_model.tree_gru.loop_paths import loop_paths
from halide_autotune.autotune_loop.cost_model.tree_gru.training import TreeGruProblem
from halide_autotune.autotune_loop.cost_model.tree_gru.weights import TreeGruWeights, tree_gru_scores
from halide_autotune.autotune_loop.gaussian_process import clipped_log_times, fewer
from halide_autotune.autotune_loop.lowered.loop_rows import LoopRows, loop_rows
from halide_autotune.autotune_loop.lowered.lowered_file import unpack_lowered
from halide_autotune.autotune_loop.lowered.lowered_schedule import LoweredSchedule
from halide_autotune.autotune_loop.search.models.ensemble import bagged, ensemble_of
from halide_autotune.autotune_loop.search.models.expectation import Expectation
from halide_autotune.autotune_loop.search.models.nest_prior import NestPrior, foreseen

# In the process that has TensorFlow.
TrainTreeGru = Callable[[TreeGruProblem], TreeGruWeights]
_MEMBERS, _MOST_SAMPLES, _MOST_KEPT = 4, 256, 4096


class TreeGru:
    """Says which of several lowered schedules to time.

    Args:
        timed: each schedule that was timed.
        times_ms: of each; at least two.
        prior: what other pipelines say; the networks take as much of it as helps.
        train: trains them.
        uses_ranks: whether they learn which schedule is faster, or the times themselves.

    Raises:
        ModelProcessError: the process that trains has ended, or takes too long, or the training came to nothing.
    """

    def __init__(
        self,
        timed: Sequence[LoweredSchedule],
        times_ms: Sequence[float],
        prior: NestPrior | None = None,
        *,
        train: TrainTreeGru,
        uses_ranks: bool = True,
    ) -> None:
        logs = clipped_log_times(times_ms)
        kept = fewer(logs, _MOST_SAMPLES)
        schedules, logs = [timed[place] for place in kept], logs[kept]
        rows = np.array([each.features for each in schedules], dtype=np.float64)
        self._prior, self._center = prior, rows.mean(axis=0)
        paths, said = loop_paths([_rows(each) for each in schedules]), foreseen(prior, rows, self._center)
        draws = bagged(_MEMBERS, len(schedules), seed=len(schedules))
        problem = TreeGruProblem(paths, logs, said, draws, uses_ranks, seed=len(schedules))
        self._weights = train(problem)
        if not all(np.isfinite(each).all() for each in self._weights.tensors()):
            raise ModelProcessError("The networks that walk loops have learnt nothing that is a number.")
        self._ensemble = ensemble_of(tree_gru_scores(self._weights, paths, said), logs, rows, draws)

    def expectation(self, schedules: Sequence[LoweredSchedule]) -> Expectation:
        """What is expected of schedules: the networks' mean, and how much they differ."""
        features = [each.features for each in schedules]
        if not schedules:
            return self._ensemble.expectation(np.zeros((_MEMBERS, 0)), features)
        paths = loop_paths([_rows(each) for each in schedules])
        said = foreseen(self._prior, np.array(features, dtype=np.float64), self._center)
        return self._ensemble.expectation(tree_gru_scores(self._weights, paths, said), features)


@lru_cache(_MOST_KEPT)
def _rows(schedule: LoweredSchedule) -> LoopRows:
    return loop_rows(unpack_lowered(schedule.packed, "a loop nest"), schedule.cores)
