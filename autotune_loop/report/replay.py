"""Replaying a recorded run without a device: other ways to choose and learn on the same times."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from halide_autotune.autotune_loop.candidate import TrainingSample
from halide_autotune.autotune_loop.cost_model.process.model_process import ModelProcess
from halide_autotune.autotune_loop.cost_model.ranking import spearman
from halide_autotune.autotune_loop.report.recorded_run import RecordedRun, TaskSamples, read_recorded_run
from halide_autotune.autotune_loop.search.selection import choose_batch
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.store.featurization import Featurization, read_featurization
from halide_autotune.targets.errors import RunFolderError, WeightsError
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.weights.network import Network
from halide_autotune.weights.weights_file import Weights, read_weights, write_weights

_SHUFFLES = 200


@dataclass(frozen=True)
class ReplayedRound:
    """One round of a replay.

    Attributes:
        timed: schedules looked up so far, in all rounds.
        best_ms: the fastest of them.
        shuffled_best_ms: the average best of as many schedules drawn at random.
        correlation: Spearman's ρ of the round's predictions and times; None if it does not exist.
        accepted: whether the training after the round gave weights that rank no worse.
    """

    round_index: int
    task_index: int
    timed: int
    best_ms: float
    shuffled_best_ms: float
    correlation: float | None
    accepted: bool


@dataclass(frozen=True)
class Replay:
    """A replay of one argument set.

    Attributes:
        recorded: schedules in the run.
        best_ms: the fastest of all of them.
    """

    task_index: int
    recorded: int
    best_ms: float
    rounds: tuple[ReplayedRound, ...]
    order_ms: tuple[float, ...] = field(repr=False)

    def samples_until(self, share: float) -> int | None:
        """How many schedules it took to come within `share` of the best; None if it never did."""
        limit_ms = self.best_ms * (1 + share)
        return next((count for count, ms in enumerate(self.order_ms, start=1) if ms <= limit_ms), None)


@dataclass(frozen=True)
class ReplayRequest:
    """The options of a replay.

    Attributes:
        options: how schedules are chosen and learnt from; the most rounds of an argument set, fewer if every schedule
            has been looked up.
        weights: to start from; None takes those of the run's first round.
        environment: of the model's process.
        scratch: an empty folder for it.
    """

    folder: Path
    options: RunOptions
    weights: Weights | None
    environment: Mapping[str, str]
    scratch: Path


@dataclass
class _Task:
    """The schedules of one argument set; `left` are not looked up yet."""

    index: int
    recorded_ms: list[float]
    left: list[tuple[TrainingSample, Featurization]]
    shuffled_ms: list[float]
    order_ms: list[float] = field(default_factory=list)
    rounds: list[ReplayedRound] = field(default_factory=list)


def replay(request: ReplayRequest, listen: Callable[[ReplayedRound], None], stop: StopSignal) -> list[Replay]:
    """Choose batches from the recorded schedules, look up their times, learn, and repeat.

    A pool is drawn at random from the schedules that are left, as large as a search's would be (`pool_factor`), and the
    model chooses from it. A recording does not have what a search with other weights would have found.

    Raises:
        RunFolderError: the folder has no run or no timed schedule, or is damaged.
        WeightsError: the weights are missing, damaged or for another network.
        ModelProcessError: the model's process ended.
    """
    run = read_recorded_run(request.folder)
    if any(task.space is not None for task in run.record.spec.tasks):
        raise RunFolderError(
            f"{request.folder} has tuned parameters; a replay is for schedules.",
            next_step="Replay a run without --tune.",
        )
    network = _network(run)
    found = (_task(run, task, network, request.options.search.seed) for task in run.tasks)
    tasks = [task for task in found if task.left]
    if not tasks:
        raise RunFolderError(
            f"{request.folder} has no timed schedule with features.",
            next_step="Pass a run that has timed some.",
        )
    weights_path = request.scratch / "start.weights"
    write_weights(_start_weights(request, network), weights_path)
    with _model(run, request, weights_path) as model:
        for round_index in range(request.options.limits.rounds):
            for task in (a for a in tasks if a.left and not stop.is_set()):
                listen(_replay_round(model, task, round_index, request))
    return [
        Replay(task.index, len(task.recorded_ms), min(task.recorded_ms), tuple(task.rounds), tuple(task.order_ms))
        for task in tasks
    ]


def _replay_round(model: ModelProcess, task: _Task, round_index: int, request: ReplayRequest) -> ReplayedRound:
    sampling = request.options.search
    seed = sampling.seed + round_index
    pool_size = min(len(task.left), max(sampling.batch_size, round(sampling.batch_size * sampling.pool_factor)))
    places = sorted(random.Random(seed).sample(range(len(task.left)), pool_size))
    pool = [task.left[place] for place in places]
    predicted_ms = model.predict([sample.featurization_path for sample, _ in pool])
    chosen = choose_batch(
        [features.schedule_features for _, features in pool],
        predicted_ms,
        min(sampling.batch_size, pool_size),
        sampling.random_share,
        sampling.diversity,
        seed,
    )
    taken = {places[i] for i in chosen}
    task.left = [entry for place, entry in enumerate(task.left) if place not in taken]
    times_ms = [pool[i][0].measured.median_ms for i in chosen]
    task.order_ms += times_ms
    accepted = _learn(model, [pool[i][0] for i in chosen], request)
    known = [(predicted_ms[i], ms) for i, ms in zip(chosen, times_ms, strict=True) if predicted_ms[i] is not None]
    done = ReplayedRound(
        round_index=round_index,
        task_index=task.index,
        timed=len(task.order_ms),
        best_ms=min(task.order_ms),
        shuffled_best_ms=task.shuffled_ms[len(task.order_ms) - 1],
        correlation=spearman(np.array([p for p, _ in known], dtype=float), np.array([m for _, m in known])),
        accepted=accepted,
    )
    task.rounds.append(done)
    return done


def _learn(model: ModelProcess, samples: Sequence[TrainingSample], request: ReplayRequest) -> bool:
    model.add_samples(samples)
    report = model.train(request.options.learn, request.options.search.seed)
    if report.weights is not None:
        trained = request.scratch / "trained.weights"
        write_weights(report.weights, trained)
        model.load_weights(trained)
    return report.accepted


def _network(run: RecordedRun) -> Network:
    name = run.record.spec.profile.autoscheduler.name
    try:
        return Network(name)
    except ValueError as error:
        raise RunFolderError(
            f"{run.folder} was searched with {name}, which has no cost model to train.",
            next_step=f"Pass a run of {' or '.join(Network)}.",
        ) from error


def _task(run: RecordedRun, task: TaskSamples, network: Network, seed: int) -> _Task:
    entries = []
    for measured in task.samples:
        for path in sorted((run.folder / "samples" / measured.candidate.sample).glob("*.featurization")):
            # A damaged one counts as never sampled.
            with contextlib.suppress(WeightsError):
                entries.append((TrainingSample(measured, path, task.task_index), read_featurization(path, network)))
    times_ms = [sample.measured.median_ms for sample, _ in entries]
    return _Task(task.task_index, times_ms, entries, _shuffled_best_ms(times_ms, seed))


def _shuffled_best_ms(times_ms: Sequence[float], seed: int) -> list[float]:
    """For every count, the mean best of so many schedules drawn at random."""
    if not times_ms:
        return []
    source = np.random.default_rng(seed)
    orders = np.stack([source.permutation(np.array(times_ms)) for _ in range(_SHUFFLES)])
    means: list[float] = np.minimum.accumulate(orders, axis=1).mean(axis=0).tolist()
    return means


def _start_weights(request: ReplayRequest, network: Network) -> Weights:
    weights = request.weights or read_weights(request.folder / "samples" / "batch_0_0" / "used.weights")
    if weights.network is not network:
        raise WeightsError(
            f"The weights are for {weights.network}, but the run used {network}.",
            next_step=f"Pass weights for {network}.",
        )
    return weights


def _model(run: RecordedRun, request: ReplayRequest, weights_path: Path) -> ModelProcess:
    return ModelProcess(
        num_cores=run.record.spec.parallelism,
        weights_path=weights_path,
        log_path=request.scratch / "model.log",
        environment={**request.environment, "TMPDIR": str(request.scratch)},
    )
