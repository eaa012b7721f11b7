"""Weights of another device are a start, not a fate: the first samples decide whether the run goes on from them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from halide_autotune.autotune_loop.cost_model.cost_model import CostModel
from halide_autotune.autotune_loop.cost_model.dataset import MIN_UNIQUE_SCHEDULES
from halide_autotune.autotune_loop.cost_model.learner import Learner
from halide_autotune.autotune_loop.cost_model.process.child_process import ModelProcessError
from halide_autotune.autotune_loop.events import Event, Notice
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.targets.errors import WeightsError
from halide_autotune.weights.arithmetic import perturb_weights
from halide_autotune.weights.weights_file import Weights, read_weights, weights_sha256
from tests.measured_candidates import training_sample
from tests.run_specs import make_record, make_spec
from tests.unit.autotune_loop.cost_model.conftest import PluginSearch

pytestmark = pytest.mark.usefixtures("own_processes")

NUM_CORES = 2
SPEC = make_spec(parallelism=NUM_CORES, options=RunOptions.of(epochs=1))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    made = RunStore(tmp_path / "run", make_record(), resume=False)
    yield made
    made.close()


def learner_of(store: RunStore, start: Weights, heard: list[Event], own: Weights | None = None) -> Learner:
    """What learns in a run; `own` are Halide's weights, if `start` comes from other runs."""
    is_transferred = own is not None
    return Learner(store, start, SPEC, os.environ, None, heard.append, own or start, is_transferred=is_transferred)


@pytest.mark.usefixtures("tensorflow_ready")
@pytest.mark.parametrize("transferred_is_right", [True, False])
def test_the_better_of_transferred_and_own_weights_is_trained_on(
    transferred_is_right: bool, store: RunStore, searches: list[PluginSearch], baseline: Weights
) -> None:
    stranger = perturb_weights(baseline, 3.0, seed=4)
    truth = stranger if transferred_is_right else baseline
    heard: list[Event] = []
    with learner_of(store, stranger, heard, baseline) as learner:
        learner.start()
        for number, search in enumerate(searches):
            times_ms = CostModel(truth, NUM_CORES).predict(search.featurizations())
            for schedule, time_ms in zip(search.schedules, times_ms, strict=True):
                learner.add_sample(training_sample(schedule.featurization_path, float(time_ms) + 1e-6, number + 1))
        learner.train(0)
        told = [event.text for event in heard if isinstance(event, Notice)]
        assert bool(told) is not transferred_is_right
        if told:
            assert "Halide's own weights order 100.0 %" in told[0]
        learner.train(1)
        assert len([event for event in heard if isinstance(event, Notice)]) == len(told)


@pytest.mark.usefixtures("tensorflow_ready")
def test_the_order_of_measuring_does_not_matter(
    tmp_path: Path, searches: list[PluginSearch], baseline: Weights
) -> None:
    samples = [(schedule.featurization_path, 1.0 + n % 7) for n, schedule in enumerate(searches[0].schedules)]
    learnt = []
    for name, ordered in (("forwards", samples), ("backwards", samples[::-1])):
        store = RunStore(tmp_path / name, make_record(), resume=False)
        with learner_of(store, baseline, []) as learner:
            learner.start()
            for path, time_ms in ordered:
                learner.add_sample(training_sample(path, time_ms, 1))
            learner.train(0)
            learnt.append(weights_sha256(read_weights(store.updated_weights)))
        store.close()
    assert learnt[0] == learnt[1] != weights_sha256(baseline)


@pytest.mark.usefixtures("tensorflow_ready")
def test_what_was_learnt_is_what_predicts(store: RunStore, searches: list[PluginSearch], baseline: Weights) -> None:
    search = searches[0]
    paths = [schedule.featurization_path for schedule in search.schedules]
    with learner_of(store, baseline, []) as learner:
        learner.start()
        before_ms = learner.predict(paths)
        for number, path in enumerate(paths):
            learner.add_sample(training_sample(path, 1.0 + number % 7, 1))
        learner.train(0)
        assert not learner.has_new_samples
        after_ms = learner.predict(paths)
    learnt = read_weights(store.updated_weights)
    assert before_ms == pytest.approx(list(CostModel(baseline, NUM_CORES).predict(search.featurizations())), rel=1e-4)
    assert after_ms == pytest.approx(list(CostModel(learnt, NUM_CORES).predict(search.featurizations())), rel=1e-4)
    assert after_ms != pytest.approx(before_ms, rel=0.05)


@pytest.mark.usefixtures("tensorflow_ready")
def test_a_run_goes_on_without_a_process_that_was_killed(
    store: RunStore, searches: list[PluginSearch], baseline: Weights
) -> None:
    paths = [schedule.featurization_path for schedule in searches[0].schedules]
    heard: list[Event] = []
    with learner_of(store, baseline, heard) as learner:
        learner.start()
        assert None not in learner.predict(paths)
        (child,) = [
            each for each in psutil.Process().children() if any("model_worker" in word for word in each.cmdline())
        ]
        child.kill()
        for number, path in enumerate(paths):
            learner.add_sample(training_sample(path, 1.0 + number % 7, 1))
        to_learn = [learner.has_new_samples]
        learner.train(0)
        assert learner.predict(paths) == [None] * len(paths)
        learner.train(1)
        to_learn.append(learner.has_new_samples)
    assert to_learn == [True, False]
    (notice,) = [event for event in heard if isinstance(event, Notice)]
    assert notice.warning and "was killed by signal 9." in notice.text and "The run goes on without it" in notice.text
    assert weights_sha256(read_weights(store.updated_weights)) == weights_sha256(baseline)


@pytest.mark.usefixtures("tensorflow_ready")
def test_a_process_that_cannot_start_or_is_to_end_is_no_loss_to_survive(
    store: RunStore, searches: list[PluginSearch], baseline: Weights
) -> None:
    paths = [schedule.featurization_path for schedule in searches[0].schedules]
    heard: list[Event] = []

    with learner_of(store, baseline, heard) as interrupted:
        interrupted.start()
        interrupted.predict(paths)
        interrupted.interrupt()
        with pytest.raises(ModelProcessError):
            interrupted.predict(paths)
    with learner_of(store, baseline, heard) as unstarted:
        unstarted.start()
        unstarted._process.kill()
        with pytest.raises(ModelProcessError):
            unstarted.train(0)
    assert not heard


def test_too_few_samples_are_not_worth_a_training(
    store: RunStore, searches: list[PluginSearch], baseline: Weights
) -> None:
    learner = learner_of(store, baseline, [])
    for count, schedule in enumerate(searches[0].schedules[:MIN_UNIQUE_SCHEDULES], start=1):
        learner.add_sample(training_sample(schedule.featurization_path, 1.0, 1))
        assert learner.has_new_samples == (count == MIN_UNIQUE_SCHEDULES)


def test_damaged_learnt_weights_may_be_deleted(store: RunStore, baseline: Weights) -> None:
    learner_of(store, baseline, [])
    path = store.updated_weights
    for damage in (b"", path.read_bytes()[:-4]):
        path.write_bytes(damage)
        with pytest.raises(WeightsError) as caught:
            learner_of(store, baseline, [])
        assert f"{path} is damaged" in caught.value.message
        assert caught.value.next_step.startswith("Delete the file") and "--resume" in caught.value.next_step
    path.unlink()
    learner_of(store, baseline, [])
    assert weights_sha256(read_weights(path)) == weights_sha256(baseline)
