"""Training: what is accepted, what is refused, and that held-out schedules stay out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest

from halide_autotune.autotune_loop.cost_model import fitting
from halide_autotune.autotune_loop.cost_model.dataset import group_samples, is_held_out
from halide_autotune.autotune_loop.cost_model.training import train
from halide_autotune.autotune_loop.cost_model.training_report import TrainingOutcome
from halide_autotune.autotune_loop.specification.options import LearnOptions, Loss
from halide_autotune.autotune_loop.store.sample_file import Sample
from halide_autotune.targets.errors import UsageError, WeightsError
from halide_autotune.targets.halide_install import find_halide_install
from halide_autotune.targets.values.options import check_options
from halide_autotune.weights.baseline import baseline_weights
from halide_autotune.weights.weights_file import Weights, weights_sha256

CORES = 2
LEARN = LearnOptions(epochs=60)
pytestmark = pytest.mark.usefixtures("tensorflow_ready")


def held_out(sample: Sample) -> bool:
    return is_held_out(sample.featurization.schedule_sha256, LEARN.held_out_share, seed=0)


@pytest.mark.parametrize("loss", get_args(Loss))
def test_training_lowers_the_loss_and_is_repeatable(loss: Loss, samples: list[Sample], baseline: Weights) -> None:
    learn = replace(LEARN, loss=loss, held_out_share=0.0, learning_rate=5e-4)
    report = train(baseline, samples, learn, CORES)
    assert report.outcome is TrainingOutcome.ACCEPTED, report.reason
    assert report.weights is not None
    assert len(report.losses) == 60
    assert report.losses[-1] < report.losses[0]
    assert report.judged_on == "training"
    assert report.before is not None and report.after is not None
    before, after = report.before.pairwise_accuracy, report.after.pairwise_accuracy
    assert before is not None and after is not None
    assert after >= before
    again = train(baseline, samples[::-1], learn, CORES)
    assert again.losses == report.losses
    assert again.weights is not None and report.weights is not None
    assert weights_sha256(again.weights) == weights_sha256(report.weights)


@pytest.mark.parametrize("loss", get_args(Loss))
def test_training_for_gpus_learns_what_it_is_not_shown(
    loss: Loss, gpu_samples: list[Sample], gpu_baseline: Weights
) -> None:
    report = train(gpu_baseline, gpu_samples, LearnOptions(loss=loss), 40)
    assert report.outcome is TrainingOutcome.ACCEPTED, report.reason
    assert report.weights is not None and report.weights.network is gpu_baseline.network
    assert report.losses[-1] < 0.9 * report.losses[0]
    assert report.judged_on == "held-out"


def test_the_graph_is_traced_once_for_any_number_of_samples(samples: list[Sample], baseline: Weights) -> None:
    for count in (30, 50, len(samples)):
        train(baseline, samples[:count], replace(LEARN, epochs=count % 7 + 1), CORES)
    function: Any = fitting._fitting_function(baseline.network, "relative_throughput")
    assert function.experimental_get_tracing_count() == 1


def test_held_out_schedules_are_never_learnt_from(samples: list[Sample], baseline: Weights) -> None:
    slower = [replace(s, runtime_ms=s.runtime_ms * 7) if held_out(s) else s for s in samples]
    first, second = train(baseline, samples, LEARN, CORES), train(baseline, slower, LEARN, CORES)
    assert first.losses == second.losses
    assert first.judged_on == "held-out"
    assert first.held_out_samples + first.training_samples == sum(map(len, group_samples(samples, 2)))
    assert first.before is not None and first.before.samples == first.held_out_samples > 0


def test_weights_that_rank_worse_are_not_accepted(samples: list[Sample], baseline: Weights) -> None:
    """Learn from runtimes turned upside down, judge by the plug-in's own costs."""
    upside_down = [s if held_out(s) else replace(s, runtime_ms=1 / s.runtime_ms) for s in samples]
    report = train(baseline, upside_down, replace(LEARN, learning_rate=3e-3), CORES)
    assert report.outcome is TrainingOutcome.RANKS_WORSE
    assert not report.accepted
    assert report.weights is None
    assert report.before is not None and report.after is not None
    before, after = report.before.pairwise_accuracy, report.after.pairwise_accuracy
    assert before is not None and after is not None
    assert after < before
    assert "held-out schedules" in report.reason


def test_a_divergence_is_an_outcome(samples: list[Sample], baseline: Weights) -> None:
    report = train(baseline, samples, replace(LEARN, learning_rate=1e38), CORES)
    assert (report.outcome, report.weights) == (TrainingOutcome.DIVERGED, None)
    assert "diverged at the learning rate 1e+38" in report.reason
    assert len(report.losses) < 60


@pytest.mark.parametrize("count", [0, 1, 7])
def test_too_few_samples_is_an_outcome(count: int, samples: list[Sample], baseline: Weights) -> None:
    report = train(baseline, samples[:count], LEARN, CORES)
    assert (report.outcome, report.weights, report.losses) == (TrainingOutcome.TOO_FEW_SAMPLES, None, ())
    assert "8 distinct schedules" in report.reason


def test_equal_runtimes_leave_nothing_to_judge(samples: list[Sample], baseline: Weights) -> None:
    report = train(baseline, [replace(s, runtime_ms=1.0) for s in samples], LEARN, CORES)
    assert report.accepted
    assert "no order to judge by" in report.reason


def test_unfit_arguments_are_refused(samples: list[Sample], baseline: Weights) -> None:
    anderson = baseline_weights(find_halide_install().plugin_path("Anderson2021"))
    with pytest.raises(WeightsError, match="features of Adams2019, but the weights are for Anderson2021"):
        train(anderson, samples, LEARN, CORES)
    with pytest.raises(UsageError, match="at least 1 core"):
        train(baseline, samples, LEARN, -1)
    for change in (
        {"epochs": 0},
        {"learning_rate": float("nan")},
        {"held_out_share": 1.0},
        {"loss": "squared"},
    ):
        with pytest.raises(UsageError, match=next(iter(change)).replace("_", "-")):
            check_options(replace(LEARN, **change))
