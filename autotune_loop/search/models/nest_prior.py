"""What the loop nests of other pipelines say of one of which little or nothing was timed.

A sum of what schedules do (search/models/nest_cost.py) says it, and a Gaussian process over a part of what was recorded
how much is known; where there is no sum, the process says both (docs/measured/models.md).

AutoTVM's global model (Chen et al., Learning to Optimize Tensor Programs, 2018, section 4): it is trained on what was
recorded of others, and what a run times itself corrects it. Numbers of different pipelines are compared by how far they
are from what is usual for the pipeline: twice the traffic of its other schedules, and not so many bytes.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from halide_autotune.autotune_loop.gaussian_process import (
    Array,
    Posterior,
    clipped_log_times,
    condition,
    matern,
)
from halide_autotune.autotune_loop.lowered.features import NEST_FEATURE_NAMES, NestFeatures
from halide_autotune.autotune_loop.search.models.expectation import Expectation
from halide_autotune.autotune_loop.search.models.nest_cost import NestCost, read_cost, rough_cost
from halide_autotune.targets.errors import WeightsError, os_error_as
from halide_autotune.targets.lowering.loop_nest import VERSION
from halide_autotune.targets.process.atomic_write import write_atomically

# As in the model of a pipeline's own loop nests, in the prior's spreads.
_FURTHEST_FEATURE = 4.0
_LENGTHS, _NOISES = (0.3, 0.6, 1.0, 2.0, 4.0), (0.03, 0.1, 0.3)
# The features of a pipeline's schedules, and their times in milliseconds.
RecordedPipeline = tuple[Sequence[NestFeatures], Sequence[float]]
SHIPPED = Path(__file__).with_name("nest_prior.npz")


@dataclass(frozen=True)
class NestPrior:
    """A Gaussian process over how schedules differ from the usual one of their pipeline.

    Attributes:
        rows: the differences in each feature; a row for each schedule that was recorded.
        log_times: how much longer each takes than is usual, as a logarithm.
        length: of the kernel, in spreads of the features.
        noise: variance of what the features do not explain, as a share of that of the times.
        cost: what schedules do, as a sum; None where the process is all.
    """

    rows: Array
    log_times: Array
    length: float
    noise: float
    cost: NestCost | None = None

    def expected(self, features: Array, usual: Array) -> Array:
        """How much longer schedules take than is usual, as logarithms.

        Args:
            features: a row for each schedule.
            usual: the features of the pipeline's usual schedule: the mean of those that are known.
        """
        if self.cost is not None:
            return self.cost.log_costs(features) - self.cost.log_costs(usual[None])
        return self._deviation * self._posterior.means(self._across(self._scaled(features - usual)))

    def expectation(self, schedules: Sequence[NestFeatures]) -> Expectation:
        """What is expected of schedules of one pipeline, of which none was timed: relative to their mean."""
        rows = np.array(schedules, dtype=np.float64).reshape(len(schedules), self.rows.shape[1])
        usual = rows.mean(axis=0) if len(rows) else np.zeros(self.rows.shape[1])
        scaled = self._scaled(rows - usual)
        across = self._across(scaled)
        explained = self._posterior.explained(across)
        covariance = matern(distances(scaled, scaled) / self.length) - explained.T @ explained
        variance = self._deviation**2
        return Expectation(self.expected(rows, usual), variance * covariance, self.noise * variance, 0.0)

    def with_pipelines(self, pipelines: Sequence[RecordedPipeline]) -> NestPrior:
        """The same, and what other pipelines have taught."""
        rows, log_times = differences_of(pipelines)
        return replace(
            self,
            rows=np.concatenate([self.rows, rows]),
            log_times=np.concatenate([self.log_times, log_times]),
            cost=None if self.cost is None else self.cost.corrected(*_as_arrays(pipelines)),
        )

    def corrected(self, features: Array, times_ms: Array) -> NestPrior:
        """The same for one pipeline, after some of its schedules were timed: the sum has its weights from these, too.

        Args:
            features: a row for each schedule.
        """
        return self if self.cost is None else replace(self, cost=self.cost.corrected([features], [times_ms]))

    def _across(self, scaled: Array) -> Array:
        return matern(distances(scaled, self._known) / self.length)

    def _scaled(self, differences: Array) -> Array:
        return in_spreads(differences, self._spread)

    @cached_property
    def _spread(self) -> Array:
        return np.asarray(self.rows.std(axis=0))

    @cached_property
    def _known(self) -> Array:
        return self._scaled(self.rows)

    @cached_property
    def _deviation(self) -> float:
        return float(self.log_times.std()) or 1.0

    @cached_property
    def _posterior(self) -> Posterior:
        kernel = matern(distances(self._known, self._known) / self.length)
        return condition(kernel, self.log_times / self._deviation, self.noise)


def foreseen(prior: NestPrior | None, features: Array, usual: Array) -> Array:
    """What other pipelines say of schedules, as `NestPrior.expected`; nothing without a prior."""
    if prior is None or not len(features):
        return np.zeros(len(features))
    return prior.expected(features, usual)


def fit_prior(pipelines: Sequence[RecordedPipeline]) -> NestPrior:
    """Learn from several pipelines."""
    rows, log_times = differences_of(pipelines)
    features_count = int((rows.std(axis=0) > 0).sum())
    priors = [
        NestPrior(rows, log_times, length * np.sqrt(features_count), noise) for length in _LENGTHS for noise in _NOISES
    ]
    return max(priors, key=lambda prior: prior._posterior.log_likelihood)


def differences_of(pipelines: Sequence[RecordedPipeline]) -> tuple[Array, Array]:
    """How each schedule differs from the usual one of its pipeline: its features, and the logarithm of its time."""
    rows, log_times = [], []
    for nests, times_ms in pipelines:
        logs = clipped_log_times(times_ms)
        features = np.array(nests, dtype=np.float64)
        rows.append(features - features.mean(axis=0))
        log_times.append(logs - logs.mean())
    return np.concatenate(rows), np.concatenate(log_times)


def fit_prior_cost(pipelines: Sequence[RecordedPipeline], known: NestCost | None = None) -> NestCost:
    """Learn `NestPrior.cost` from several pipelines.

    Args:
        known: what was learnt of another device, which is nearer to the truth than rules of thumb.
    """
    return (known or rough_cost()).corrected(*_as_arrays(pipelines))


def _as_arrays(pipelines: Sequence[RecordedPipeline]) -> tuple[list[Array], list[Array]]:
    """The features of each pipeline, and its times."""
    features = [np.array(nests, dtype=np.float64) for nests, _ in pipelines]
    return features, [np.array(times_ms, dtype=np.float64) for _, times_ms in pipelines]


def write_prior(prior: NestPrior, path: Path) -> None:
    """Write a prior as NumPy's arrays, as a whole or not at all."""
    content = io.BytesIO()
    np.savez_compressed(
        content,
        version=np.array(VERSION),
        names=np.array(NEST_FEATURE_NAMES),
        rows=prior.rows.astype(np.float16),
        log_times=prior.log_times.astype(np.float16),
        settings=np.array([prior.length, prior.noise]),
        **({} if prior.cost is None else prior.cost.arrays()),
    )
    with os_error_as(WeightsError, f"{path} cannot be written"):
        write_atomically(path, content.getvalue())


def read_prior(path: Path = SHIPPED) -> NestPrior | None:
    """Read a prior; None if it is one of other features, or of loop nests of another version.

    Raises:
        WeightsError: it cannot be read, or is damaged.
    """
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            if "version" not in file or int(file["version"]) != VERSION or tuple(file["names"]) != NEST_FEATURE_NAMES:
                return None
            rows, log_times = (np.asarray(file[name], dtype=np.float64) for name in ("rows", "log_times"))
            length, noise = (float(number) for number in file["settings"])
            cost = read_cost(file)
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise WeightsError(f"{path} cannot be read ({error}).") from error
    return NestPrior(rows, log_times, length, noise, cost)


def learnt_prior(file: Path | None) -> NestPrior | None:
    """What was learnt in a file; what comes with the SDK where there is none.

    Raises:
        WeightsError: as `read_prior`, and if it is of other features, or of loop nests of another version.
    """
    if file is None:
        return read_prior()
    found = read_prior(file)
    if found is None:
        raise WeightsError(
            f"{file} was learnt from loop nests as another version of the SDK describes them. "
            "Learn it anew: `sdk weights train`."
        )
    return found


def in_spreads(differences: Array, spread: Array) -> Array:
    """How far schedules are from the usual one in each feature, in its spreads; what never varied has told nothing."""
    varied = spread > 0
    return np.asarray(np.clip(differences[:, varied] / spread[varied], -_FURTHEST_FEATURE, _FURTHEST_FEATURE))


def distances(rows: Array, columns: Array) -> Array:
    """Row × column: Euclid's."""
    squares = (rows**2).sum(axis=1)[:, None] + (columns**2).sum(axis=1)[None, :] - 2 * rows @ columns.T
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))
