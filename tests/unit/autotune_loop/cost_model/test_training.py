"""Training: what is accepted, what is refused, and that held-out schedules stay out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from autotune_loop.cost_model import fitting
from autotune_loop.cost_model.dataset import group_samples, is_held_out
from autotune_loop.cost_model.training import train
from autotune_loop.cost_model.training_options import Loss, TrainingOptions
from autotune_loop.cost_model.training_report import TrainingOutcome, report_fields, report_from_fields
from autotune_loop.store.sample_file import Sample
from targets.errors import UsageError, WeightsError
from targets.halide_install import find_halide_install
from weights.baseline import baseline_weights
from weights.weights_file import Weights, weights_sha256

OPTIONS = TrainingOptions(num_cores=2, epochs=60)
pytestmark = pytest.mark.usefixtures("tensorflow_ready")


def held_out(sample: Sample, options: TrainingOptions = OPTIONS) -> bool:
    return is_held_out(sample.featurization.schedule_sha256, options.held_out_share, options.seed)


@pytest.mark.parametrize("loss", list(Loss))
def test_training_lowers_the_loss_and_is_repeatable(loss: Loss, samples: list[Sample], baseline: Weights) -> None:
    options = replace(OPTIONS, loss=loss, held_out_share=0.0, learning_rate=5e-4)
    report = train(baseline, samples, options)
    assert report.outcome is TrainingOutcome.ACCEPTED, report.reason
    assert report.weights is not None
    assert len(report.losses) == 60
    assert report.losses[-1] < report.losses[0]
    assert report.judged_on == "training"
    assert report.before is not None and report.after is not None
    before, after = report.before.pairwise_accuracy, report.after.pairwise_accuracy
    assert before is not None and after is not None
    assert after >= before
    again = train(baseline, samples[::-1], options)
    assert again.losses == report.losses
    assert again.weights is not None and report.weights is not None
    assert weights_sha256(again.weights) == weights_sha256(report.weights)


@pytest.mark.parametrize("loss", list(Loss))
def test_training_for_gpus_learns_what_it_is_not_shown(
    loss: Loss, gpu_samples: list[Sample], gpu_baseline: Weights
) -> None:
    report = train(gpu_baseline, gpu_samples, replace(OPTIONS, num_cores=40, loss=loss, epochs=300))
    assert report.outcome is TrainingOutcome.ACCEPTED, report.reason
    assert report.weights is not None and report.weights.network is gpu_baseline.network
    assert report.losses[-1] < 0.9 * report.losses[0]
    assert report.judged_on == "held-out"


def test_the_graph_is_traced_once_for_any_number_of_samples(samples: list[Sample], baseline: Weights) -> None:
    for count in (30, 50, len(samples)):
        train(baseline, samples[:count], replace(OPTIONS, epochs=count % 7 + 1))
    function: Any = fitting._fitting_function(baseline.network, Loss.RELATIVE_THROUGHPUT)
    assert function.experimental_get_tracing_count() == 1


def test_held_out_schedules_are_never_learnt_from(samples: list[Sample], baseline: Weights) -> None:
    slower = [replace(s, runtime_ms=s.runtime_ms * 7) if held_out(s) else s for s in samples]
    first, second = train(baseline, samples, OPTIONS), train(baseline, slower, OPTIONS)
    assert first.losses == second.losses
    assert first.judged_on == "held-out"
    assert first.held_out_samples + first.training_samples == sum(map(len, group_samples(samples, 2)))
    assert first.before is not None and first.before.samples == first.held_out_samples > 0


def test_weights_that_rank_worse_are_not_accepted(samples: list[Sample], baseline: Weights) -> None:
    """Learn from runtimes turned upside down, judge by the plug-in's own costs."""
    upside_down = [s if held_out(s) else replace(s, runtime_ms=1 / s.runtime_ms) for s in samples]
    report = train(baseline, upside_down, replace(OPTIONS, learning_rate=3e-3))
    assert report.outcome is TrainingOutcome.RANKS_WORSE
    assert not report.accepted
    assert report.weights is None
    assert report.before is not None and report.after is not None
    before, after = report.before.pairwise_accuracy, report.after.pairwise_accuracy
    assert before is not None and after is not None
    assert after < before
    assert "held-out schedules" in report.reason


def test_a_divergence_is_an_outcome(samples: list[Sample], baseline: Weights) -> None:
    report = train(baseline, samples, replace(OPTIONS, learning_rate=1e38))
    assert (report.outcome, report.weights) == (TrainingOutcome.DIVERGED, None)
    assert "diverged at the learning rate 1e+38" in report.reason
    assert len(report.losses) < 60


@pytest.mark.parametrize("count", [0, 1, 7])
def test_too_few_samples_is_an_outcome(count: int, samples: list[Sample], baseline: Weights) -> None:
    report = train(baseline, samples[:count], OPTIONS)
    assert (report.outcome, report.weights, report.losses) == (TrainingOutcome.TOO_FEW_SAMPLES, None, ())
    assert "8 distinct schedules" in report.reason


def test_equal_runtimes_leave_nothing_to_judge(samples: list[Sample], baseline: Weights) -> None:
    report = train(baseline, [replace(s, runtime_ms=1.0) for s in samples], OPTIONS)
    assert report.accepted
    assert "no order to judge by" in report.reason


def test_a_report_survives_being_taken_apart(samples: list[Sample], baseline: Weights) -> None:
    report = train(baseline, samples, OPTIONS)
    again = report_from_fields(report_fields(report), report.weights)
    assert again == report


def test_unfit_arguments_are_refused(samples: list[Sample]) -> None:
    anderson = baseline_weights(find_halide_install().plugin_path("Anderson2021"))
    with pytest.raises(WeightsError, match="features of Adams2019, but the weights are for Anderson2021"):
        train(anderson, samples, OPTIONS)
    for change in (
        {"num_cores": 0},
        {"epochs": 0},
        {"learning_rate": float("nan")},
        {"held_out_share": 1.0},
        {"loss": "squared"},
    ):
        with pytest.raises(UsageError, match=next(iter(change))):
            replace(OPTIONS, **change)
