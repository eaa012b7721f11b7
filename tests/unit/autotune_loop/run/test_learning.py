"""When a run trains its model, and what it asks of it."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from halide_autotune.autotune_loop.candidate import TrainingSample
from halide_autotune.autotune_loop.cost_model.learner import Learner
from halide_autotune.autotune_loop.cost_model.process.child_process import ModelProcessError
from halide_autotune.autotune_loop.events import Event, Notice
from halide_autotune.autotune_loop.run.budget.ending import RunEnding
from halide_autotune.autotune_loop.run.budget.run_budget import RunBudget
from halide_autotune.autotune_loop.run.budget.time_plan import TimePlan
from halide_autotune.autotune_loop.run.learning import RunLearning
from halide_autotune.devices.device import Clock
from halide_autotune.targets.process.stop_signal import StopSignal


class Model:
    """A model without a process."""

    def __init__(self, fails: bool = False) -> None:
        self.new, self.rounds, self.has_started, self.fails = 0, list[int](), False, fails

    def start(self) -> None:
        self.has_started = True

    def add_sample(self, sample: object) -> None:
        self.new += 1

    def await_start(self, limit_s: float) -> bool:
        return self.has_started

    def predict(self, featurizations: list[Path]) -> list[float | None]:
        return [1.0] * len(featurizations)

    @property
    def has_new_samples(self) -> bool:
        return self.new > 0

    def train(self, round_index: int) -> None:
        if self.fails:
            raise ModelProcessError("It was killed.")
        self.new = 0
        self.rounds.append(round_index)


def learning(
    model: Model, *, is_wanted: bool = True, budget_s: float | None = None, stop: StopSignal | None = None
) -> tuple[RunLearning, list[Event]]:
    heard: list[Event] = []
    stop = stop or StopSignal()
    budget = RunBudget(budget_s, time.monotonic())
    plan, ending = TimePlan(budget, Clock.WALL, 1, 8), RunEnding(stop, budget.end, lambda: None)
    return RunLearning(cast(Learner, model), plan, budget, ending, stop, heard.append, is_wanted, 3), heard


SAMPLE = cast(TrainingSample, SimpleNamespace())


def test_it_trains_on_what_is_new_and_only_then() -> None:
    model = Model()
    made, heard = learning(model)
    made.start()
    assert made.learn() == 0.0 and model.rounds == []
    made.add_sample(SAMPLE)
    assert made.learn() >= 0.0 and model.rounds == [3]
    made.learn_last()
    assert model.rounds == [3] and not heard
    assert made.predict([Path("a"), Path("b")]) == [1.0, 1.0]


def test_a_run_that_only_records_has_no_model() -> None:
    model = Model()
    made, heard = learning(model, is_wanted=False)
    made.start()
    made.add_sample(SAMPLE)
    assert made.learn() == 0.0
    made.learn_last()
    assert not model.has_started and model.new == 0 and model.rounds == [] and not heard
    model.has_started = True
    assert made.predict([Path("a")]) == [None], "it is not asked, either"


@pytest.mark.parametrize("is_stopped", [False, True])
def test_what_there_is_no_time_to_learn_is_told_unless_the_user_stops_it(is_stopped: bool) -> None:
    model, stop = Model(), StopSignal()
    made, heard = learning(model, budget_s=1e-9, stop=stop)
    made.add_sample(SAMPLE)
    made.plan.reserve.add_training(1e6)
    if is_stopped:
        stop.set()
    made.learn_last()
    told = [event.text for event in heard if isinstance(event, Notice)]
    assert model.rounds == [] and len(told) == int(not is_stopped)
    assert is_stopped or "--resume" in told[0]


@pytest.mark.parametrize("has_ended", [False, True])
def test_a_model_that_is_lost_is_an_error_unless_the_run_ends(has_ended: bool) -> None:
    made, heard = learning(Model(fails=True))
    made.add_sample(SAMPLE)

    def end_and_fail(round_index: int) -> Any:
        made.ending.signal.set()
        raise ModelProcessError("It was killed.")

    if has_ended:
        made.learner.train = end_and_fail  # type: ignore[method-assign]  # a model that the run's end kills
        made.learn_last()
        assert len(heard) == 1
    else:
        with pytest.raises(ModelProcessError):
            made.learn_last()
