"""How `sdk autotune` and `sdk network tune` end: the exit code, and what they say of a run that had to stop."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.network.models import read_model
from halide_autotune.autotune_loop.network.tasks import tasks_of
from halide_autotune.autotune_loop.run.result import Outcome, RunTotals, TunedSchedule, TuneResult
from halide_autotune.autotune_loop.store.published import Published, ScheduleTime
from halide_autotune.sdk.api.network.tune import TunedNetwork, TunedOperator
from halide_autotune.sdk.commands.autotune import autotune
from tests.recorded_run_folder import write_run_folder
from tests.unit.sdk.commands.conftest import Run

PUBLISHED = Published(
    "batch_0_0/1", "blur_r0_a0_s1", confirmed=True, reason="faster", message="It wins.", tuned=ScheduleTime(1.0, 0.1)
)


def result(outcome: Outcome, folder: Path, *, is_published: bool = True) -> TuneResult:
    write_run_folder(folder, samples=3)
    header = folder / "samples" / "best.blur.schedule.h" if is_published else None
    return TuneResult(
        outcome=outcome,
        generator="blur",
        target="arm64",
        device="pi",
        clock="wall",
        tuned=(TunedSchedule({}, "blur", "Mullapudi2016's", header, PUBLISHED),),
        run_folder=folder,
        weights=folder / "samples" / "updated.weights",
        totals=RunTotals(1, 3, {}, 0, {}, 2.0),
    )


def network_result(of_run: TuneResult) -> TunedNetwork:
    network = read_model("resnet18-convolutions")
    return TunedNetwork(network, (TunedOperator(tasks_of(network.operators)[0], of_run.best),), (), of_run)


every_outcome = pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (Outcome.FINISHED, 0),
        (Outcome.EXHAUSTED, 0),
        (Outcome.BUDGET_SPENT, 0),
        (Outcome.DEVICES_LOST, 1),
        (Outcome.INTERRUPTED, 130),
    ],
)


@every_outcome
def test_the_exit_code_says_how_a_run_has_ended(
    run: Run, blur: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcome: Outcome, code: int
) -> None:
    ended = result(outcome, tmp_path / "run")
    monkeypatch.setattr(autotune, "_prepare", lambda values, command, begin: lambda listen, stop: ended)
    done = run("autotune", blur, "--target", "arm64")
    assert done.code == code, done
    if outcome is Outcome.DEVICES_LOST:
        assert "All devices were lost" in done.err and f"sdk autotune --resume {ended.run_folder}" in " ".join(
            done.err.split()
        )


def test_a_run_that_has_published_nothing_has_failed(
    run: Run, blur: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = result(Outcome.FINISHED, tmp_path / "run", is_published=False)
    monkeypatch.setattr(autotune, "_prepare", lambda values, command, begin: lambda listen, stop: nothing)
    assert run("autotune", blur, "--target", "arm64").code == 1


@every_outcome
def test_the_exit_code_says_how_a_network_run_has_ended(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcome: Outcome, code: int
) -> None:
    tuned = network_result(result(outcome, tmp_path / "run"))
    monkeypatch.setattr("halide_autotune.sdk.api.network.tune.tune_network", lambda *arguments, **named: tuned)
    done = run("network", "tune", "resnet18-convolutions", "--target", "arm64")
    assert done.code == code, done
    assert "The run is run: sdk report shows it" in done.out
    if outcome is Outcome.DEVICES_LOST:
        assert f"sdk autotune --resume {tuned.result.run_folder}" in done.err


def test_a_network_run_that_has_published_nothing_has_failed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned = network_result(result(Outcome.FINISHED, tmp_path / "run", is_published=False))
    monkeypatch.setattr("halide_autotune.sdk.api.network.tune.tune_network", lambda *arguments, **named: tuned)
    done = run("network", "tune", "resnet18-convolutions", "--target", "arm64", "--json")
    assert done.code == 1 and "No schedule of blur was timed" in done.err
    assert json.loads(done.out)["operators"][0]["tuned_ms"] == 1.0


def test_a_notifier_is_told_and_one_that_fails_changes_nothing(
    run: Run, blur: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = result(Outcome.FINISHED, tmp_path / "run")
    monkeypatch.setattr(autotune, "_prepare", lambda values, command, begin: lambda listen, stop: ended)
    tell = tmp_path / "tell"
    tell.write_text("#!/bin/sh\ncat > told\necho no network >&2\nexit 1\n")
    tell.chmod(0o755)
    done = run("autotune", blur, "--target", "arm64", "--json", "--quiet", "--notify", tell)
    assert done.code == 0
    assert done.err == "sdk: warning: tell was not notified: it exited with code 1: no network.\n"
    told = json.loads((tmp_path / "told").read_text())
    assert told.pop("text").startswith("blur for arm64 (finished): ")
    assert told == json.loads(done.out)
