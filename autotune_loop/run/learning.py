"""The cost model of a run: when it is trained, and what it expects of schedules."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.autotune_loop.candidate import TrainingSample
from halide_autotune.autotune_loop.cost_model.learner import Learner
from halide_autotune.autotune_loop.cost_model.process.child_process import ModelProcessError
from halide_autotune.autotune_loop.events import Listener, Notice
from halide_autotune.autotune_loop.run.budget.ending import RunEnding
from halide_autotune.autotune_loop.run.budget.run_budget import RunBudget
from halide_autotune.autotune_loop.run.budget.time_plan import TimePlan
from halide_autotune.targets.process.stop_signal import StopSignal

# Share of the time left that is waited for the cost model to start.
_MODEL_SHARE = 0.25


@dataclass
class RunLearning:
    """Trains on what was timed, where the run has a model of its own.

    Attributes:
        is_wanted: False for a run that only records: it trains and asks no model.
        newest_round: of the schedules that were timed last.
    """

    learner: Learner
    plan: TimePlan
    budget: RunBudget
    ending: RunEnding
    stop: StopSignal
    listen: Listener
    is_wanted: bool
    newest_round: int = 0

    def start(self) -> None:
        """Start the model's process and return at once."""
        if self.is_wanted:
            self.learner.start()

    def add_sample(self, sample: TrainingSample) -> None:
        """Keep a sample for the next training."""
        if self.is_wanted:
            self.learner.add_sample(sample)

    def predict(self, featurizations: Sequence[Path]) -> list[float | None]:
        """What the cost model expects; nothing if it starts too slowly for the budget."""
        if self.is_wanted and self.learner.await_start(self.budget.deadline.share(_MODEL_SHARE).left_s):
            return self.learner.predict(featurizations)
        return [None] * len(featurizations)

    def learn(self) -> float:
        """Train on the schedules timed since the last training; return the seconds that it took."""
        if not self.learner.has_new_samples or self.ending.has_come():
            return 0.0
        started_s = time.monotonic()
        self.learner.train(self.newest_round)
        duration_s = time.monotonic() - started_s
        self.plan.reserve.add_training(duration_s)
        return duration_s

    def learn_last(self) -> None:
        """Train after the play-off: the winner matters more than the weights for the next run."""
        self.budget.begin("the last training")
        try:
            if self.plan.has_time_to_learn() and not self.ending.has_come():
                self.learn()
                return
        except ModelProcessError:
            if not self.ending.has_come():
                raise
        if self.learner.has_new_samples and not self.stop.is_set():
            self.listen(Notice("The budget ended before the last training: --resume or `sdk retrain` make up for it."))
