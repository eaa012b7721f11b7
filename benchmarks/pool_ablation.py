"""Ways of choosing what to time, tried on recorded pools of timed schedules, without a device.

    python -m benchmarks.pool_ablation harris=RUN[,RUN ...] hist=RUN ... [--trials 192] [--seeds 5] [--ways random ...]

A pool is what runs of one pipeline have timed: at least 500 schedules of all techniques are worth it. Runs that have
converged leave hundreds within a few per cent of the best, which any way finds: of those within 2 % of each other three
are kept, so that the best are few, as they are among all schedules that there are. Each way begins
with the same 16 at random, and then chooses 16 at a time of what it has not chosen yet; it knows the times of what it
has chosen alone. Compared with AutoTVM's figures 4 to 7 (Chen et al. 2018): random choice, a genetic algorithm's
(neighbours of the fastest), simulated annealing on a model, and each model with and without uncertainty, variety and
what the other pools teach. Printed: after how many trials a way is within 5 % of the pool's best, and how near it is
after 32, 64 and 128; medians with quartiles over pools and seeds. With --page a plot of the best against trials.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.foreseen_schedules import Known, known_schedules
from benchmarks.simulated_clock_ranking import Bench, open_bench
from benchmarks.tree_gru import NestPaths, TreeGru
from halide_autotune.autotune_loop.gaussian_process import Array, clipped_log_times
from halide_autotune.autotune_loop.lowered.features import NestFeatures
from halide_autotune.autotune_loop.search.models.nest_model import NestModel
from halide_autotune.autotune_loop.search.models.nest_prior import NestPrior, fit_prior
from halide_autotune.autotune_loop.search.models.schedule_model import Features, ScheduleModel
from halide_autotune.targets.lowering.loop_nest import LoopNest

_FIRST = _BATCH = 16
_NEAR = 1.05
_NEIGHBOURS, _CHAINS, _STEPS = 12, 32, 40
_AFTER = (32, 64, 128)
_BIN, _MOST_OF_BIN = 0.02, 3
# Of each other pool, for what they teach.
_MOST_TAUGHT = 128


@dataclass(frozen=True)
class Pool:
    """Timed schedules of one pipeline, each as every model sees it."""

    name: str
    times_ms: Array
    nests: list[NestFeatures]
    trees: list[LoopNest]
    features: list[Features]

    @cached_property
    def paths(self) -> NestPaths:
        return NestPaths(self.trees)

    @cached_property
    def neighbours(self) -> npt.NDArray[np.int64]:
        """Of each schedule the places of those whose loop nests differ least."""
        rows = np.array(self.nests)
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


Predict = Callable[[Trial, Sequence[int]], tuple[Array, Array]]


def _annealed(predict: Predict) -> Way:
    """Chains of steps to neighbours, on what a model expects (AutoTVM's simulated annealing)."""

    def choose(trial: Trial) -> list[int]:
        everything = range(len(trial.pool.times_ms))
        expected = predict(trial, everything)[0]
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


def _schedule_model(trial: Trial, places: Sequence[int]) -> tuple[Array, Array]:
    known = ScheduleModel([trial.pool.features[place] for place in trial.chosen], trial.times_ms)
    return known.predict([trial.pool.features[place] for place in places])


def _nests(trial: Trial, places: Sequence[int], prior: NestPrior | None = None) -> tuple[Array, Array]:
    known = NestModel([trial.pool.nests[place] for place in trial.chosen], trial.times_ms, prior)
    return known.predict([trial.pool.nests[place] for place in places])


def _trees(trial: Trial, places: Sequence[int], *, uses_ranks: bool) -> tuple[Array, Array]:
    """Three boosted forests, each of another draw. The project does without: `pip install lightgbm scikit-learn`."""
    from lightgbm import LGBMRanker, LGBMRegressor

    rows, logs = np.array(trial.pool.nests), clipped_log_times(trial.times_ms)
    told = {"n_estimators": 120, "num_leaves": 8, "min_child_samples": 4, "learning_rate": 0.08, "verbose": -1}
    found = []
    for member in range(3):
        drawn = trial.source.choice(len(logs), len(logs))
        here = rows[np.array(trial.chosen)[drawn]]
        if uses_ranks:
            order = np.argsort(np.argsort(-logs[drawn]))
            grades = (31 * order // max(1, len(order) - 1)).astype(int)
            model: Any = LGBMRanker(**told, random_state=member, label_gain=[*range(32)])
            model.fit(here, grades, group=[len(here)])
            found.append(-model.predict(rows[list(places)]))
        else:
            model = LGBMRegressor(**told, random_state=member)
            found.append(model.fit(here, logs[drawn]).predict(rows[list(places)]))
    return np.mean(found, axis=0), np.std(found, axis=0)


def _gru(trial: Trial, places: Sequence[int], *, uses_ranks: bool) -> tuple[Array, Array]:
    model = TreeGru(trial.pool.paths, uses_ranks=uses_ranks, seed=trial.seed)
    model.fit(trial.chosen, trial.times_ms)
    return model.predict(places)


def _first_by(predict: Predict, curiosity: float = 0.0) -> Way:
    """Those with the lowest lower bounds."""

    def choose(trial: Trial) -> list[int]:
        left = trial.left
        means, deviations = predict(trial, left)
        order = np.argsort(means - curiosity * deviations, kind="stable")[:_BATCH]
        return [left[place] for place in order]

    return choose


def _varied(with_others: bool) -> Way:
    """As the search does it: what is chosen counts as timed for what is known of the next."""

    def choose(trial: Trial) -> list[int]:
        left = trial.left
        prior = trial.others if with_others else None
        model = NestModel([trial.pool.nests[place] for place in trial.chosen], trial.times_ms, prior)
        return [left[place] for place in model.ranking([trial.pool.nests[place] for place in left], _BATCH)]

    return choose


WAYS: Mapping[str, Way] = {
    "random": _random,
    "genetic": _genetic,
    "annealing on schedules": _annealed(_schedule_model),
    "annealing on nests": _annealed(_nests),
    "schedules": _first_by(_schedule_model, 1.0),
    "nests, means alone": _first_by(_nests),
    "nests, uncertainty": _first_by(_nests, 1.0),
    "nests, variety too": _varied(with_others=False),
    "nests, other pools too": _varied(with_others=True),
    "boosted trees": _first_by(lambda *asked: _trees(*asked, uses_ranks=False), 1.0),
    "boosted trees, ranks": _first_by(lambda *asked: _trees(*asked, uses_ranks=True), 1.0),
    "tree GRU": _first_by(lambda *asked: _gru(*asked, uses_ranks=False), 1.0),
    "tree GRU, ranks": _first_by(lambda *asked: _gru(*asked, uses_ranks=True), 1.0),
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
    print(f"{'':24}{'within 5 % after':>24}" + "".join(f"{f'best after {count}':>22}" for count in _AFTER), flush=True)
    curves: dict[str, list[Array]] = {}
    for name in arguments.ways:
        curves[name] = [
            _curve(WAYS[name], Trial(pool, others[pool.name], seed), arguments.trials)
            for pool in pools
            for seed in range(arguments.seeds)
        ]
        print(_row(name, curves[name]), flush=True)
    if arguments.page is not None:
        _draw(curves, arguments.page)
    return 0


def _pool(name: str, runs: str, bench: Bench) -> Pool:
    known = _thinned([one for run in runs.split(",") for one in known_schedules(Path(run), bench)])
    return Pool(
        name,
        np.array([one.measured.median_ms for one in known]),
        [one.nest for one in known],
        [one.tree for one in known],
        [one.features for one in known],
    )


def _thinned(known: Sequence[Known]) -> list[Known]:
    bins: dict[int, list[Known]] = {}
    for place in np.random.default_rng(0).permutation(len(known)):
        one = known[int(place)]
        of_bin = bins.setdefault(int(np.log(one.measured.median_ms) / _BIN), [])
        if len(of_bin) < _MOST_OF_BIN:
            of_bin.append(one)
    return [one for of_bin in bins.values() for one in of_bin]


def _taught(pools: Sequence[Pool]) -> NestPrior | None:
    taught = []
    for pool in pools:
        places = np.random.default_rng(0).permutation(len(pool.times_ms))[:_MOST_TAUGHT]
        taught.append(([pool.nests[place] for place in places], [float(pool.times_ms[place]) for place in places]))
    return fit_prior(taught) if taught else None


def _curve(way: Way, trial: Trial, trials: int) -> Array:
    """The best after each trial, over the pool's best."""
    trial.chosen += [int(place) for place in trial.source.permutation(len(trial.pool.times_ms))[:_FIRST]]
    while len(trial.chosen) < min(trials, len(trial.pool.times_ms)):
        trial.chosen += way(trial)
    return np.minimum.accumulate(trial.times_ms[:trials]) / trial.pool.times_ms.min()


def _row(name: str, curves: Sequence[Array]) -> str:
    near = [int(np.argmax(curve <= _NEAR)) + 1 if (curve <= _NEAR).any() else len(curve) + 1 for curve in curves]
    cells = [_quartiles(near, "{:.0f}")]
    cells += [_quartiles([curve[min(count, len(curve)) - 1] for curve in curves], "{:.3f}") for count in _AFTER]
    return f"{name:24}{cells[0]:>24}" + "".join(f"{cell:>22}" for cell in cells[1:])


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
