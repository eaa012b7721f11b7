"""Ways of choosing what to time, tried on recorded pools of timed schedules, without a device.

    python -m benchmarks.pool_ablation harris=RUN[,RUN ...] hist=RUN ... [--trials 192] [--seeds 5] [--ways random ...]

A pool is what `benchmarks.record_pool` has timed of one pipeline: at least 500 schedules, as chance makes them, so that
the best are few. Each way begins with the same 16 at random, and then chooses 16 at a time of what it has not chosen
yet; it knows the times of what it has chosen alone. Compared with AutoTVM's figures 4 to 7 (Chen et al. 2018): random
choice, a genetic algorithm's (neighbours of the fastest), simulated annealing on a model, and each model by its means
alone, with uncertainty, with variety too, by expected improvement, with what random programs or the other pools teach,
and several together. Printed: after how many trials a way has what random choice has after 500 in the median, and is
within 5 % of the pool's best; and how near it is after 32, 64 and 128; medians with quartiles over pools and seeds.
With --page a plot of the best against trials.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import get_args

import numpy as np
import numpy.typing as npt

from benchmarks.foreseen_schedules import known_schedules
from benchmarks.simulated_clock_ranking import Bench, open_bench
from halide_autotune.autotune_loop.cost_model.tree_gru.training import train_tree_gru
from halide_autotune.autotune_loop.gaussian_process import Array
from halide_autotune.autotune_loop.lowered.lowered_schedule import LoweredSchedule
from halide_autotune.autotune_loop.search.models.expectation import Expectation, mean_of
from halide_autotune.autotune_loop.search.models.model import (
    ENSEMBLE_OF_NESTS,
    LOWERED,
    TREE_GRU,
    TREE_GRU_OF_TIMES,
    TREES,
    TREES_OF_TIMES,
)
from halide_autotune.autotune_loop.search.models.nest_models import nest_model
from halide_autotune.autotune_loop.search.models.nest_prior import NestPrior, fit_prior, read_prior
from halide_autotune.autotune_loop.search.models.schedule_model import Features, ScheduleModel
from halide_autotune.autotune_loop.specification.options import Acquisition

_FIRST = _BATCH = 16
_NEAR = 1.05
_NEIGHBOURS, _CHAINS, _STEPS = 12, 32, 40
_AFTER = (32, 64, 128)
_RANDOM_TRIALS, _RANDOM_SEEDS = 500, 101
# Of each other pool, for what they teach.
_MOST_TAUGHT = 128


@dataclass(frozen=True)
class Pool:
    """Timed schedules of one pipeline, each as every model sees it."""

    name: str
    times_ms: Array
    lowered: list[LoweredSchedule]
    features: list[Features]

    @cached_property
    def neighbours(self) -> npt.NDArray[np.int64]:
        """Of each schedule the places of those whose loop nests differ least."""
        rows = np.array([each.features for each in self.lowered])
        spread = rows.std(axis=0)
        rows = (rows - rows.mean(axis=0))[:, spread > 1e-9] / spread[spread > 1e-9]
        squares = (rows**2).sum(axis=1)
        apart = squares[:, None] + squares[None, :] - 2 * rows @ rows.T
        nearest: npt.NDArray[np.int64] = np.argsort(apart, axis=1, kind="stable")[:, 1 : _NEIGHBOURS + 1]
        return nearest


@dataclass
class Trial:
    """A way on its way through a pool.

    Attributes:
        others: what the other pools teach.
        chosen: places, in the order of choice.
    """

    pool: Pool
    others: NestPrior | None
    seed: int
    chosen: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.source = np.random.default_rng(self.seed)

    @property
    def left(self) -> list[int]:
        taken = set(self.chosen)
        return [place for place in range(len(self.pool.times_ms)) if place not in taken]

    @property
    def times_ms(self) -> list[float]:
        return [float(self.pool.times_ms[place]) for place in self.chosen]


# From a trial to the next places.
Way = Callable[[Trial], Sequence[int]]


def _random(trial: Trial) -> list[int]:
    return [int(place) for place in trial.source.permutation(trial.left)[:_BATCH]]


def _genetic(trial: Trial) -> list[int]:
    """Neighbours of the fastest, those of the very fastest first."""
    order = np.argsort(trial.times_ms, kind="stable")[: 2 * _BATCH]
    taken, found = {*trial.chosen}, []
    for place in order:
        near = [int(each) for each in trial.pool.neighbours[trial.chosen[place]] if int(each) not in taken]
        for each in near[:2]:
            taken.add(each)
            found.append(each)
    rest = [place for place in _random(trial) if place not in taken]
    return [*found, *rest][:_BATCH]


# What a model that has learnt from a trial's times expects of the schedules at these places.
Expect = Callable[[Trial, Sequence[int]], Expectation]


def _annealed(expect: Expect) -> Way:
    """Chains of steps to neighbours, on what a model expects (AutoTVM's simulated annealing)."""

    def choose(trial: Trial) -> list[int]:
        expected = expect(trial, range(len(trial.pool.times_ms))).means
        order = np.argsort(trial.times_ms, kind="stable")
        at = np.array([trial.chosen[order[place % len(order)]] for place in range(_CHAINS)])
        seen = {*map(int, at)}
        for step in range(_STEPS):
            heat = 0.3 * (1 - step / _STEPS) + 1e-3
            to = trial.pool.neighbours[at, trial.source.integers(0, _NEIGHBOURS, _CHAINS)]
            gain = expected[at] - expected[to]
            at = np.where(trial.source.random(_CHAINS) < np.exp(np.minimum(gain / heat, 0.0)), to, at)
            seen.update(map(int, to))
        taken = {*trial.chosen}
        found = sorted(seen - taken, key=lambda place: float(expected[place]))
        rest = [place for place in _random(trial) if place not in seen]
        return [*found, *rest][:_BATCH]

    return choose


def _of_schedules(trial: Trial, places: Sequence[int]) -> Expectation:
    known = ScheduleModel([trial.pool.features[place] for place in trial.chosen], trial.times_ms)
    return known.expectation([trial.pool.features[place] for place in places])


def _of_nests(name: str, prior: Callable[[Trial], NestPrior | None] = lambda trial: None) -> Expect:
    def expect(trial: Trial, places: Sequence[int]) -> Expectation:
        timed = [trial.pool.lowered[place] for place in trial.chosen]
        model = nest_model(name, train_tree_gru)(timed, trial.times_ms, prior(trial))
        return model.expectation([trial.pool.lowered[place] for place in places])

    return expect


def _together(*models: Expect) -> Expect:
    """What models say that count together."""
    return lambda trial, places: mean_of([expect(trial, places) for expect in models])


def _by_means(expect: Expect) -> Way:
    """Those that are expected to be fastest."""

    def choose(trial: Trial) -> list[int]:
        left = trial.left
        return [left[place] for place in np.argsort(expect(trial, left).means, kind="stable")[:_BATCH]]

    return choose


def _by(expect: Expect, acquisition: Acquisition, *, varied: bool = True) -> Way:
    """As the search does it: what is not known counts, and with variety what is chosen counts as timed."""

    def choose(trial: Trial) -> list[int]:
        left = trial.left
        expected = expect(trial, left)
        if not varied:
            expected = replace(expected, covariance=np.diag(np.diag(expected.covariance)))
        return [left[place] for place in expected.most_promising(_BATCH, acquisition)]

    return choose


def _shipped(trial: Trial) -> NestPrior | None:
    """What every run begins with."""
    return _shipped_prior()


@cache
def _shipped_prior() -> NestPrior | None:
    # What follows from it is worked out once for all trials.
    return read_prior()


_OF_NESTS = {"nests": LOWERED, "trees": TREES, "tree GRU": TREE_GRU}
_TAUGHT: Mapping[str, Callable[[Trial], NestPrior | None]] = {
    "random programs": _shipped,
    "other pools": lambda trial: trial.others,
}
_MODELS: Mapping[str, Expect] = {
    "schedules": _of_schedules,
    **{title: _of_nests(name) for title, name in _OF_NESTS.items()},
}
WAYS: Mapping[str, Way] = {
    "random": _random,
    "genetic": _genetic,
    **{f"{name}, annealing": _annealed(expect) for name, expect in _MODELS.items()},
    **{f"{name}, means alone": _by_means(expect) for name, expect in _MODELS.items()},
    **{f"{name}, bound alone": _by(expect, "bound", varied=False) for name, expect in _MODELS.items()},
    **{f"{name}, bound": _by(expect, "bound") for name, expect in _MODELS.items()},
    **{f"{name}, improvement": _by(expect, "improvement") for name, expect in _MODELS.items()},
    "trees of times, bound": _by(_of_nests(TREES_OF_TIMES), "bound"),
    "tree GRU of times, bound": _by(_of_nests(TREE_GRU_OF_TIMES), "bound"),
    **{
        f"{title}, {acquisition}, {taught}": _by(_of_nests(name, prior), acquisition)
        for taught, prior in _TAUGHT.items()
        for title, name in _OF_NESTS.items()
        for acquisition in get_args(Acquisition)
    },
    **{
        f"ensemble, bound, {taught}": _by(
            _together(_of_schedules, *(_of_nests(each, prior) for each in ENSEMBLE_OF_NESTS)), "bound"
        )
        for taught, prior in _TAUGHT.items()
    },
}


def main() -> int:
    """Print a row for each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pools", nargs="+", metavar="NAME=RUN[,RUN]")
    parser.add_argument("--trials", type=int, default=192)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--ways", nargs="+", default=[*WAYS], choices=[*WAYS], metavar="WAY")
    parser.add_argument("--page", type=Path, metavar="FILE", help="an HTML page with a plot")
    arguments = parser.parse_args()
    bench = open_bench()
    pools = [_pool(name, runs, bench) for name, _, runs in (each.partition("=") for each in arguments.pools)]
    others = {pool.name: _taught([each for each in pools if each is not pool]) for pool in pools}
    for pool in pools:
        print(f"{pool.name}: {len(pool.times_ms)} schedules, the best {pool.times_ms.min():.3f} ms", file=sys.stderr)
    titles = [f"as {_RANDOM_TRIALS} at random", "within 5 % after", *(f"best after {count}" for count in _AFTER)]
    print(f"{'':36}" + "".join(f"{title:>22}" for title in titles), flush=True)
    goals = [_after_random(pool) for pool in pools for _ in range(arguments.seeds)]
    curves: dict[str, list[Array]] = {}
    for name in arguments.ways:
        curves[name] = [
            _curve(WAYS[name], Trial(pool, others[pool.name], seed), arguments.trials)
            for pool in pools
            for seed in range(arguments.seeds)
        ]
        print(_row(name, curves[name], goals), flush=True)
    if arguments.page is not None:
        _draw(curves, arguments.page)
    return 0


def _pool(name: str, runs: str, bench: Bench) -> Pool:
    known = [one for run in runs.split(",") for one in known_schedules(Path(run), bench)]
    return Pool(
        name,
        np.array([one.measured.median_ms for one in known]),
        [one.lowered for one in known],
        [one.features for one in known],
    )


def _taught(pools: Sequence[Pool]) -> NestPrior | None:
    taught = []
    for pool in pools:
        places = np.random.default_rng(0).permutation(len(pool.times_ms))[:_MOST_TAUGHT]
        features = [pool.lowered[place].features for place in places]
        taught.append((features, [float(pool.times_ms[place]) for place in places]))
    return fit_prior(taught) if taught else None


def _curve(way: Way, trial: Trial, trials: int) -> Array:
    """The best after each trial, over the pool's best."""
    trial.chosen += [int(place) for place in trial.source.permutation(len(trial.pool.times_ms))[:_FIRST]]
    while len(trial.chosen) < min(trials, len(trial.pool.times_ms)):
        trial.chosen += way(trial)
    return np.minimum.accumulate(trial.times_ms[:trials]) / trial.pool.times_ms.min()


def _after_random(pool: Pool) -> float:
    """The best after 500 trials at random in the median, over the pool's best."""
    count = min(_RANDOM_TRIALS, len(pool.times_ms))
    drawn = [np.random.default_rng(seed).permutation(pool.times_ms)[:count].min() for seed in range(_RANDOM_SEEDS)]
    return float(np.median(drawn)) / float(pool.times_ms.min())


def _row(name: str, curves: Sequence[Array], goals: Sequence[float]) -> str:
    as_random = [_reached(curve, goal) for curve, goal in zip(curves, goals, strict=True)]
    cells = [_quartiles(as_random, "{:.0f}"), _quartiles([_reached(curve, _NEAR) for curve in curves], "{:.0f}")]
    cells += [_quartiles([curve[min(count, len(curve)) - 1] for curve in curves], "{:.3f}") for count in _AFTER]
    return f"{name:36}" + "".join(f"{cell:>22}" for cell in cells)


def _reached(curve: Array, goal: float) -> int:
    """After how many trials a goal is reached; one more than there were where it never is."""
    return int(np.argmax(curve <= goal)) + 1 if (curve <= goal).any() else len(curve) + 1


def _quartiles(values: Sequence[float], form: str) -> str:
    low, middle, high = (form.format(float(np.quantile(values, each))) for each in (0.25, 0.5, 0.75))
    return f"{middle} [{low}, {high}]"


def _draw(curves: Mapping[str, Sequence[Array]], page: Path) -> None:
    from bokeh.embed import file_html
    from bokeh.palettes import Category20
    from bokeh.plotting import figure

    drawn = figure(
        width=1000,
        height=560,
        y_axis_type="log",
        x_axis_label="schedules timed",
        y_axis_label="best, over the best of the pool (median of pools and seeds)",
    )
    for colour, (name, several) in zip(Category20[20], curves.items(), strict=False):
        shortest = min(map(len, several))
        middle = [statistics.median(float(curve[place]) for curve in several) for place in range(shortest)]
        drawn.step([*range(1, shortest + 1)], middle, legend_label=name, color=colour, line_width=2, mode="after")
    page.write_text(file_html(drawn, title="Ways of choosing what to time"), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
