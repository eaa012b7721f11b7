"""What was recorded of other pipelines orders the schedules of one that is new; what is timed of it corrects that."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from halide_autotune.autotune_loop.cost_model.ranking import ordered_pairs
from halide_autotune.autotune_loop.lowered.features import NEST_FEATURE_NAMES, NestFeatures
from halide_autotune.autotune_loop.search.models.nest_model import NestModel
from halide_autotune.autotune_loop.search.models.nest_prior import (
    SHIPPED,
    NestPrior,
    fit_prior,
    fit_prior_cost,
    learnt_prior,
    read_prior,
    write_prior,
)
from halide_autotune.targets.errors import WeightsError
from halide_autotune.targets.lowering.loop_nest import VERSION

WORK = [NEST_FEATURE_NAMES.index(name) for name in ("float_add", "operations", "operations on the critical path")]
TRAFFIC = NEST_FEATURE_NAMES.index("bytes from beyond 32768 bytes")
Recorded = tuple[list[NestFeatures], list[float]]


def pipeline(seed: int, count: int = 40, sign: float = 1.0) -> Recorded:
    """Schedules of a pipeline of some size: work and traffic decide, as everywhere; or the less the longer."""
    chance = Random(seed)
    size = chance.uniform(15, 30)
    nests, times_ms = [], []
    for _ in range(count):
        work, traffic = chance.uniform(0, 2), chance.uniform(0, 2)
        features = [0.0] * len(NEST_FEATURE_NAMES)
        for place in WORK:
            features[place] = size + work
        features[TRAFFIC] = size - 2 + traffic
        nests.append(tuple(features))
        times_ms.append(2 ** (size - 20 + sign * (0.5 * work + 0.5 * traffic)))
    return nests, times_ms


def accuracy(expected: object, times_ms: list[float]) -> float:
    right, pairs = ordered_pairs(np.asarray(expected), np.array(times_ms))
    return right / pairs


@pytest.fixture(scope="module")
def prior() -> NestPrior:
    return fit_prior([pipeline(seed) for seed in range(6)])


def foreseen(prior: NestPrior, recorded: Recorded) -> float:
    features = np.array(recorded[0])
    return accuracy(prior.expected(features, features.mean(axis=0)), recorded[1])


def test_it_orders_schedules_of_a_pipeline_that_it_has_never_seen(prior: NestPrior) -> None:
    assert foreseen(prior, pipeline(99)) > 0.9


def test_the_most_promising_come_first(prior: NestPrior) -> None:
    nests, times_ms = pipeline(98)
    first = prior.expectation(nests).most_promising(5)
    assert len({*first}) == 5
    assert np.mean([times_ms[place] for place in first]) < np.percentile(times_ms, 30)
    assert prior.expectation([]).most_promising(5) == []


def test_with_few_times_it_helps_and_is_corrected(prior: NestPrior) -> None:
    nests, times_ms = pipeline(97, count=80)
    few = 8
    alone = NestModel(nests[:few], times_ms[:few])
    helped = NestModel(nests[:few], times_ms[:few], prior)
    unseen = nests[few:], times_ms[few:]
    assert accuracy(helped.expectation(unseen[0]).means, unseen[1]) > accuracy(
        alone.expectation(unseen[0]).means, unseen[1]
    )
    assert math.exp(helped.expectation(nests[:1]).means[0]) == pytest.approx(times_ms[0], rel=0.2), "in milliseconds"


def test_where_it_is_wrong_what_was_timed_counts(prior: NestPrior) -> None:
    nests, times_ms = pipeline(96, count=80, sign=-1.0)
    many = 40
    model = NestModel(nests[:many], times_ms[:many], prior)
    assert foreseen(prior, (nests, times_ms)) < 0.1
    assert accuracy(model.expectation(nests[many:]).means, times_ms[many:]) > 0.9


def test_it_is_read_as_it_was_written(prior: NestPrior, tmp_path: Path) -> None:
    write_prior(prior, tmp_path / "prior.npz")
    read = read_prior(tmp_path / "prior.npz")
    assert read is not None
    assert (read.length, read.noise) == (prior.length, prior.noise)
    assert np.allclose(read.rows, prior.rows, atol=1e-2) and np.allclose(read.log_times, prior.log_times, atol=1e-2)


def test_a_sum_says_what_is_expected_and_the_process_how_much_is_known(prior: NestPrior, tmp_path: Path) -> None:
    known, (nests, _) = [pipeline(seed) for seed in range(6)], pipeline(95)
    features = np.array(nests)
    usual = features.mean(axis=0)
    cost = fit_prior_cost(known)
    whole = replace(prior, cost=cost)
    expectation = whole.expectation(nests)
    assert np.allclose(whole.expected(features, usual), cost.log_costs(features) - cost.log_costs(usual[None]))
    assert np.allclose(expectation.means, whole.expected(features, usual))
    assert np.allclose(expectation.covariance, prior.expectation(nests).covariance)
    write_prior(whole, tmp_path / "prior.npz")
    read = read_prior(tmp_path / "prior.npz")
    assert read is not None and read.cost is not None
    assert np.array_equal(read.cost.weights, cost.weights)


def test_what_other_pipelines_and_the_first_times_teach_changes_the_sum(prior: NestPrior) -> None:
    whole = replace(prior, cost=fit_prior_cost([pipeline(seed) for seed in range(6)]))
    nests, _ = pipeline(93, count=80)
    times_ms = [2 ** (features[TRAFFIC] - 20) for features in nests]
    more = whole.with_pipelines([(nests[:40], times_ms[:40])])
    assert len(more.rows) == len(whole.rows) + 40
    corrected = whole.corrected(np.array(nests[:40]), np.array(times_ms[:40]))
    assert len(corrected.rows) == len(whole.rows)
    unseen = nests[40:], times_ms[40:]
    assert foreseen(whole, unseen) < min(foreseen(more, unseen), foreseen(corrected, unseen))
    assert prior.corrected(np.array(nests), np.array(times_ms)) == prior, "there is nothing but the process"


@pytest.mark.parametrize(
    ("constant", "other"), [("NEST_FEATURE_NAMES", (*NEST_FEATURE_NAMES[:-1], "another")), ("VERSION", VERSION - 1)]
)
def test_one_of_other_features_is_left_out(
    prior: NestPrior, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, constant: str, other: object
) -> None:
    monkeypatch.setattr(f"halide_autotune.autotune_loop.search.models.nest_prior.{constant}", other)
    write_prior(replace(prior), tmp_path / "prior.npz")
    monkeypatch.undo()
    assert read_prior(tmp_path / "prior.npz") is None
    with pytest.raises(
        WeightsError, match=r"prior.npz was learnt from loop nests as another version .*sdk weights train"
    ):
        learnt_prior(tmp_path / "prior.npz")


def test_a_damaged_one_is_told(prior: NestPrior, tmp_path: Path) -> None:
    path = tmp_path / "prior.npz"
    write_prior(prior, path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(WeightsError, match="prior.npz cannot be read"):
        read_prior(path)
    content = bytearray(SHIPPED.read_bytes())
    content[len(content) // 2] ^= 16  # inside of what is packed
    path.write_bytes(content)
    with pytest.raises(WeightsError, match="prior.npz cannot be read"):
        read_prior(path)
    with pytest.raises(WeightsError, match="nothing.npz cannot be read"):
        read_prior(tmp_path / "nothing.npz")


def test_the_shipped_one_is_of_todays_features() -> None:
    shipped = read_prior(SHIPPED)
    assert shipped is not None, "learn it again with `sdk weights train`"
    assert len(shipped.rows) == len(shipped.log_times) > 300
    assert np.isfinite(shipped.rows).all() and np.isfinite(shipped.log_times).all()
