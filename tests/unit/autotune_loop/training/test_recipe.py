"""The recipe: what is learnt from some programs orders the schedules of others, and judging programs teach nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from halide_autotune.autotune_loop.cost_model.cost_model import CostModel
from halide_autotune.autotune_loop.cost_model.ranking import RankingScores
from halide_autotune.autotune_loop.lowered.features import NEST_FEATURE_NAMES
from halide_autotune.autotune_loop.search.models.nest_prior import fit_prior_cost, read_prior
from halide_autotune.autotune_loop.specification.options import Loss
from halide_autotune.autotune_loop.store.featurization import PIPELINE_FEATURE_COUNT, Featurization
from halide_autotune.autotune_loop.store.sample_file import Sample
from halide_autotune.autotune_loop.training.recipe import (
    Recipe,
    are_better,
    is_no_slower,
    judge,
    judge_prior,
    teach,
    teach_prior,
)
from halide_autotune.autotune_loop.training.recorded_programs import RecordedProgram
from halide_autotune.targets.halide_install import find_halide_install
from halide_autotune.weights.arithmetic import perturb_weights
from halide_autotune.weights.baseline import baseline_weights
from halide_autotune.weights.weights_file import Weights, weights_sha256

CORES = 4
NOISE = 3.0
pytestmark = pytest.mark.usefixtures("tensorflow_ready")


@pytest.fixture(scope="module")
def start() -> Weights:
    return baseline_weights(find_halide_install().plugin_path("Adams2019"))


@pytest.fixture(scope="module")
def programs(start: Weights) -> list[RecordedProgram]:
    """Ten programs of a machine on which other weights are right; two of the programs judge."""
    truth = CostModel(perturb_weights(start, NOISE, 7), CORES)
    made = []
    for seed in range(10):
        random = np.random.default_rng(seed)
        pipeline = random.integers(0, 9, (3, PIPELINE_FEATURE_COUNT)).astype(np.float32)
        drawn = np.exp(random.uniform(0, 9, (24, 3, start.network.schedule_feature_count))).astype(np.float32)
        features = [Featurization(schedule, pipeline) for schedule in drawn]
        times_ms = [float(ms) for ms in np.clip(truth.predict(features) / 1e3, 1e-3, 1e4)]
        samples = tuple(Sample(one, ms, seed) for one, ms in zip(features, times_ms, strict=True))
        work = [np.log(ms) for ms in times_ms]
        nests = tuple((float(each), *(0.0,) * (len(NEST_FEATURE_NAMES) - 1)) for each in work)
        made.append(RecordedProgram(seed, len(samples), samples, nests, tuple(times_ms)))
    return made


def test_what_is_learnt_of_some_programs_orders_others(start: Weights, programs: list[RecordedProgram]) -> None:
    taught = teach(start, programs, CORES)
    assert taught is not None and (taught.programs, taught.samples) == (8, 192) and taught.recipe.share in (0.5, 1.0)
    before, after = (judge(each, programs, CORES) for each in (start, taught.weights))
    assert before.samples == after.samples == 48, "of the two that judge"
    assert before.pairwise_accuracy is not None and after.pairwise_accuracy is not None
    assert after.pairwise_accuracy > before.pairwise_accuracy


@pytest.mark.parametrize("loss", ["rank", "relative_throughput"])
def test_whatever_the_loss_the_costs_are_times(start: Weights, programs: list[RecordedProgram], loss: Loss) -> None:
    taught = teach(start, programs, CORES, Recipe(loss, 0.5))
    assert taught is not None and taught.recipe == Recipe(loss, 0.5)
    learnt = [one for one in programs if not one.judges]
    costs_ms = [
        CostModel(taught.weights, CORES).predict([each.featurization for each in one.samples]) for one in learnt
    ]
    ratios = np.concatenate([np.array(one.times_ms) / costs for one, costs in zip(learnt, costs_ms, strict=True)])
    assert np.median(ratios) == pytest.approx(1.0, rel=0.02)


def test_judging_programs_teach_nothing(start: Weights, programs: list[RecordedProgram]) -> None:
    def upside_down(program: RecordedProgram) -> RecordedProgram:
        times_ms = [sample.runtime_ms for sample in program.samples][::-1]
        samples = tuple(replace(one, runtime_ms=ms) for one, ms in zip(program.samples, times_ms, strict=True))
        return replace(program, samples=samples)

    first = teach(start, programs, CORES)
    second = teach(start, [upside_down(one) if one.judges else one for one in programs], CORES)
    third = teach(start, [one if one.judges else upside_down(one) for one in programs], CORES)
    assert first is not None and second is not None and third is not None
    assert weights_sha256(first.weights) == weights_sha256(second.weights) != weights_sha256(third.weights)


def test_too_little_teaches_nothing(start: Weights, programs: list[RecordedProgram]) -> None:
    few = [replace(one, samples=one.samples[:7], nests=one.nests[:7], times_ms=one.times_ms[:7]) for one in programs]
    assert teach(start, few, CORES) is None and teach(start, [], CORES) is None
    assert teach_prior(few) is None
    assert judge(start, [], CORES).pairwise_accuracy is None


def test_loop_nests_of_some_programs_order_others(programs: list[RecordedProgram]) -> None:
    prior = teach_prior(programs)
    assert prior is not None
    found = judge_prior(prior, programs)
    assert found is not None and found[0] > 0.7 and found[1] < 1.1, "one number decides; hopeless ones are all alike"
    assert judge_prior(prior, [one for one in programs if not one.judges]) is None
    assert judge_prior(None, programs) is None


def test_of_a_sum_and_a_process_the_one_is_kept_that_orders_more_pairs(programs: list[RecordedProgram]) -> None:
    prior = teach_prior(programs)
    assert prior is not None
    nests = [(one.nests, one.times_ms) for one in programs if not one.judges]
    known = read_prior()
    assert known is not None
    both = [replace(prior, cost=cost) for cost in (None, fit_prior_cost(nests, known.cost))]
    accuracies = [(judge_prior(each, programs) or (0.0, 0.0))[0] for each in both]
    assert accuracies[0] != accuracies[1]
    assert (prior.cost is None) is (accuracies[0] > accuracies[1])


@pytest.mark.parametrize(
    ("pairs", "best", "better"),
    [(0.8, 1.0, True), (0.8, 1.105, True), (0.8, 1.2, False), (0.6, 1.0, False), (None, None, False)],
)
def test_weights_are_better_in_both_ways_or_not_at_all(pairs: float | None, best: float | None, better: bool) -> None:
    old = RankingScores(10, 45, 0.7, 1.3, 1.1, 0.5)
    new = RankingScores(10, 45, pairs, 1.3, best, 0.5)
    assert are_better(new, old) is better


@pytest.mark.parametrize(("gain", "is_kept"), [(1.2, True), (0.995, True), (0.98, False)])
def test_searches_may_be_slower_by_what_timings_differ_by(gain: float, is_kept: bool) -> None:
    assert is_no_slower(gain) is is_kept
