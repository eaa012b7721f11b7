"""The recipe: from what was timed of random programs to weights, and how they are judged.

Imports TensorFlow when it trains.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from halide_autotune.autotune_loop.cost_model.cost_model import CostModel
from halide_autotune.autotune_loop.cost_model.dataset import group_samples
from halide_autotune.autotune_loop.cost_model.fitting import fit
from halide_autotune.autotune_loop.cost_model.network import pack_weights, unpack_weights
from halide_autotune.autotune_loop.cost_model.pipeline_batch import PipelineBatch
from halide_autotune.autotune_loop.cost_model.ranking import RankingScores, best_in_top, ordered_pairs, score_ranking
from halide_autotune.autotune_loop.cost_model.training import calibrate
from halide_autotune.autotune_loop.lowered.features import NestFeatures
from halide_autotune.autotune_loop.search.models.nest_prior import (
    NestPrior,
    RecordedPipeline,
    fit_prior,
    fit_prior_cost,
    read_prior,
)
from halide_autotune.autotune_loop.specification.options import LearnOptions, Loss
from halide_autotune.autotune_loop.training.recorded_programs import RecordedProgram
from halide_autotune.autotune_loop.training.trained_weights import Scores
from halide_autotune.weights.weights_file import Weights

_LEARN: Mapping[Loss, LearnOptions] = {
    "relative_throughput": LearnOptions(epochs=600, learning_rate=3e-4),
    "rank": LearnOptions(loss="rank", epochs=300, learning_rate=3e-4),
}
_SHARES = (0.5, 1.0)
_PARTS = 3
# A time that is longer by less than this is no worse: it is what timings differ by.
_AS_GOOD = 1.01
# Fitting a process takes time with the third power of all; from fewer of a program it cannot be told what is usual.
_MOST_NESTS, _FEWEST_NESTS = 1536, 8


@dataclass(frozen=True)
class Recipe:
    """How weights are trained.

    Attributes:
        loss: of which Halide's learns the times of the fastest, and AutoTVM's the order of all.
        share: of what was trained in the mean with the weights it began with. One half forgets less of what those know
            of other programs (Wortsman et al. 2022, WiSE-FT).
    """

    loss: Loss
    share: float


# What is taken while more is to come.
USUAL = Recipe("rank", 1.0)


@dataclass(frozen=True)
class TaughtWeights:
    """Weights from random programs.

    Attributes:
        programs, samples: what they have learnt from.
    """

    weights: Weights
    programs: int
    samples: int
    recipe: Recipe


def teach(
    start: Weights, programs: Sequence[RecordedProgram], cores: int, recipe: Recipe | None = None
) -> TaughtWeights | None:
    """Train on the programs that weights may learn from.

    Args:
        cores: of the device that timed them.
        recipe: None for the one that orders most pairs of programs that are left out in turn.

    Returns:
        None if no program has enough schedules.
    """
    batches = _batches(programs, cores, judging=False)
    if not batches:
        return None
    recipe = recipe or _best_recipe(start, batches, cores)
    (weights,) = _mixed(start, batches, cores, recipe.loss, [recipe.share])
    return TaughtWeights(weights, len(batches), sum(len(batch) for batch in batches), recipe)


def judge(weights: Weights, programs: Sequence[RecordedProgram], cores: int) -> RankingScores:
    """How weights order the schedules of programs that none have learnt from."""
    return score_ranking(CostModel(weights, cores), _batches(programs, cores, judging=True))


def are_better(new: RankingScores, old: RankingScores) -> bool:
    """Whether weights order more pairs, and have no worse schedules among those that they put first.

    `best_in_top_8` is 1 where the best is among the first 8, and grows from there.
    """
    if new.pairwise_accuracy is None or old.pairwise_accuracy is None:
        return False
    assert new.best_in_top_8 is not None and old.best_in_top_8 is not None, "there are pairs"
    return new.pairwise_accuracy > old.pairwise_accuracy and new.best_in_top_8 <= _AS_GOOD * old.best_in_top_8


def is_no_slower(gain: float) -> bool:
    """Whether what is so many times as fast is no slower, for all that timings differ by."""
    return gain * _AS_GOOD >= 1


def score(
    start: Weights,
    trained: Weights,
    known: NestPrior | None,
    learnt: NestPrior | None,
    programs: Sequence[RecordedProgram],
    cores: int,
) -> Scores:
    """How the programs that judge are ordered before the training and after it.

    Args:
        known, learnt: what is known of loop nests before, and after.
    """
    before, after = (judge(each, programs, cores) for each in (start, trained))
    return Scores(before, after, judge_prior(known, programs), judge_prior(learnt, programs))


def nests_are_better(scores: Scores) -> bool:
    """Whether what was learnt of loop nests orders more pairs than what was known."""
    if scores.nests_after is None:
        return False
    return scores.nests_before is None or scores.nests_before[0] < scores.nests_after[0]


def teach_prior(programs: Sequence[RecordedProgram]) -> NestPrior | None:
    """Learn what the loop nests of the same programs say; None if there are too few.

    It has a sum of what schedules do, unless that orders fewer pairs of the programs that judge than the process alone.
    """
    pipelines = _nests(programs, judging=False)
    if len(pipelines) < _PARTS:
        return None
    most = max(_FEWEST_NESTS, _MOST_NESTS // len(pipelines))
    process = fit_prior([_thinned(nests, times_ms, most) for nests, times_ms in pipelines])
    known = read_prior()
    with_cost = replace(process, cost=fit_prior_cost(pipelines, None if known is None else known.cost))
    before, after = (judge_prior(each, programs) for each in (process, with_cost))
    return process if before is not None and after is not None and after[0] < before[0] else with_cost


def judge_prior(prior: NestPrior | None, programs: Sequence[RecordedProgram]) -> tuple[float, float] | None:
    """How loop nests alone order schedules of programs that nothing was learnt from: the share of pairs in order, and
    the best of the first 8 over the best of all in the mean; None where there are none."""
    judging = _nests(programs, judging=True)
    if prior is None or not judging:
        return None
    right, pairs, best = 0.0, 0, []
    for nests, times_ms in judging:
        features, times = np.array(nests), np.array(times_ms)
        expected = prior.expected(features, features.mean(axis=0))
        more_right, more_pairs = ordered_pairs(expected, times)
        right, pairs = right + more_right, pairs + more_pairs
        best.append(best_in_top(expected, times, 8) or np.nan)
    return right / max(1, pairs), float(np.mean(best))


def _best_recipe(start: Weights, batches: Sequence[PipelineBatch], cores: int) -> Recipe:
    if len(batches) < _PARTS:
        return USUAL
    accuracies: dict[Recipe, float] = defaultdict(float)
    for part in range(_PARTS):
        left_out = batches[part::_PARTS]
        rest = [batch for place, batch in enumerate(batches) if place % _PARTS != part]
        for loss in _LEARN:
            for share, weights in zip(_SHARES, _mixed(start, rest, cores, loss, _SHARES), strict=True):
                found = score_ranking(CostModel(weights, cores), left_out)
                accuracies[Recipe(loss, share)] += found.pairwise_accuracy or 0.0
    return max(accuracies, key=accuracies.__getitem__)


def _mixed(
    start: Weights, batches: Sequence[PipelineBatch], cores: int, loss: Loss, shares: Sequence[float]
) -> list[Weights]:
    """Trained weights, mixed with those they began with by each of the shares; these alone if the training diverged."""
    scaled = calibrate(start, batches, cores)
    before = pack_weights(scaled)
    trained, _ = fit(scaled, batches, _LEARN[loss])
    if not np.isfinite(trained).all():
        trained = before
    means = [share * trained + (1 - share) * before for share in shares]
    mixed = [unpack_weights(mean.astype(np.float32), start.network) for mean in means]
    # The order of schedules says nothing of how long they take.
    return [calibrate(weights, batches, cores) for weights in mixed]


def _batches(programs: Sequence[RecordedProgram], cores: int, *, judging: bool) -> list[PipelineBatch]:
    samples = [sample for program in programs if program.judges is judging for sample in program.samples]
    return group_samples(samples, cores)


def _nests(programs: Sequence[RecordedProgram], *, judging: bool) -> list[RecordedPipeline]:
    chosen = [program for program in programs if program.judges is judging and len(program.nests) >= _FEWEST_NESTS]
    return [(program.nests, program.times_ms) for program in chosen]


def _thinned(nests: Sequence[NestFeatures], times_ms: Sequence[float], most: int) -> RecordedPipeline:
    """At most so many schedules of a program, from the fastest to the slowest."""
    if len(times_ms) <= most:
        return nests, times_ms
    order = np.argsort(times_ms, kind="stable")
    kept = order[np.linspace(0, len(order) - 1, most).round().astype(int)]
    return [nests[place] for place in kept], [times_ms[place] for place in kept]
