"""How late a run may be, and what is said of a budget that was too short."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.run.budget import run_budget as budget_module
from halide_autotune.autotune_loop.run.budget.run_budget import RunBudget
from halide_autotune.targets.errors import BudgetError


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(budget_module, "time", made)
    return made


@pytest.mark.parametrize("budget_s", [0.01, 1.0, 10.0, 40.0, 60.0, 3600.0])
def test_a_run_ends_within_a_quarter_or_ten_seconds(budget_s: float) -> None:
    budget = RunBudget(budget_s, started_s=100.0)
    assert budget.deadline.at_s == 100.0 + budget_s
    allowed_s = max(10.0, budget_s / 4)
    assert budget.deadline.at_s < budget.end.at_s < budget.deadline.at_s + allowed_s


def test_without_a_budget_there_is_no_end() -> None:
    budget = RunBudget(None, started_s=100.0)
    assert budget.deadline.at_s == budget.end.at_s == math.inf
    assert not budget.is_spent


def test_a_budget_that_is_too_short_says_what_took_how_long_and_what_would_do(clock: Clock) -> None:
    budget = RunBudget(5.0, started_s=98.0)
    for step, lasts_s in (
        ("opening the device", 0.2),
        ("preparing the reference", 7.0),
        ("building the first schedules", 6.0),
    ):
        budget.begin(step)
        budget.begin(step)
        clock.now_s += lasts_s
    assert budget.step == "building the first schedules"
    error = budget.too_short("blur", Path("tuned/blur-host-1"))
    assert isinstance(error, BudgetError) and error.exit_code == 1
    assert error.message == (
        "The budget of 5 s was too short: no schedule of blur was timed"
        " (starting 2 s, preparing the reference 7 s, building the first schedules 6 s)."
    )
    assert error.next_step == "About 2m should do: sdk autotune --resume tuned/blur-host-1 --budget 2m"
    resumed = budget.too_short("blur", Path("tuned/blur-host-1"), 60)
    assert "nothing of blur was timed beside what the run has already, 60 schedules" in resumed.message


@pytest.mark.parametrize(("took_s", "advised"), [(1.0, "1m"), (16.0, "2m"), (100.0, "10m"), (1e5, "480m")])
def test_the_advised_budget_grows_with_what_the_run_took(clock: Clock, took_s: float, advised: str) -> None:
    budget = RunBudget(1.0, started_s=clock.now_s)
    clock.now_s += took_s
    assert budget.too_short("blur", Path("run")).next_step.endswith(f"--budget {advised}")
