"""Runs whose budget is over in the middle of something."""

from __future__ import annotations

from pathlib import Path

import pytest

from halide_autotune.autotune_loop.cost_model.dataset import MIN_UNIQUE_SCHEDULES
from halide_autotune.autotune_loop.deadline import Deadline
from halide_autotune.autotune_loop.events import Event, Notice, PlayOff
from halide_autotune.autotune_loop.run import rounds as rounds_module
from halide_autotune.autotune_loop.run.budget import run_budget as budget_module
from halide_autotune.autotune_loop.run.budget.ending import RunEnding
from halide_autotune.autotune_loop.run.result import Outcome
from halide_autotune.autotune_loop.specification import build_limits
from halide_autotune.sdk.options import generator_spec
from halide_autotune.targets.errors import BudgetError, GeneratorError
from tests.end_to_end.conftest import SMALL, Tune
from tests.process_state import PATIENCE_S


def test_a_run_whose_budget_is_spent_still_times_its_first_schedules(
    tune: Tune, examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget_module, "_LEAST_OVERTIME_S", 1000.0)
    for step in ("search_s", "reference_s", "reference_run_s"):  # of which each takes a while on a busy machine
        monkeypatch.setitem(build_limits._BUDGET_SHARES, step, (1.0, 600.0))
    generator = str(examples / "separable_filter.py")
    result = tune(generator, parameters=SMALL, budget_s=0.01, rounds=9, run_folder=tmp_path / "run")
    assert (result.outcome, result.totals.rounds) == (Outcome.BUDGET_SPENT, 1)
    assert result.totals.samples_timed > 0 and result.best.header is not None


def test_a_run_without_time_for_anything_says_so_and_can_be_continued(
    tune: Tune, examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, generator = tmp_path / "run", str(examples / "separable_filter.py")
    with monkeypatch.context() as patched:
        patched.setattr(budget_module, "_LEAST_OVERTIME_S", 0.0)
        patched.setattr(budget_module, "_ENOUGH_FACTOR", 0.0)  # however long it took here
        with pytest.raises(
            BudgetError, match=r"The budget of 0\.01 s was too short: no schedule of .* was timed"
        ) as told:
            tune(generator, parameters=SMALL, budget_s=0.01, run_folder=folder)
    assert f"sdk autotune --resume {folder} --budget 1m" in told.value.next_step
    assert not list((folder / "samples").glob("batch_*"))
    resumed = tune(generator, parameters=SMALL, budget_s=1000.0, rounds=1, run_folder=folder, resume=True)
    assert resumed.outcome is Outcome.FINISHED and resumed.best.confirmed
    assert not [path for path in folder.rglob(".*") if path.name != ".lock"], "something half-written is left"


def test_a_play_off_that_the_budget_ends_leaves_the_winner_unconfirmed(
    tune: Tune, examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endings: list[RunEnding] = []
    heard: list[str] = []

    class Watched(RunEnding):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)  # type: ignore[arg-type]  # they are passed on
            endings.append(self)

    def listen(event: Event) -> None:
        if isinstance(event, PlayOff):
            endings[0]._end = Deadline(0.0)
            assert endings[0].signal.wait(PATIENCE_S)
        elif isinstance(event, Notice):
            heard.append(event.text)

    monkeypatch.setattr(rounds_module, "RunEnding", Watched)
    # A schedule of its own would stay, and nothing would be published.
    generator = tmp_path / "unscheduled.py"
    text = (examples / "separable_filter.py").read_text()
    generator.write_text(text.replace("if not self.using_autoscheduler():", "if False:"))
    folder = tmp_path / "run"
    # Halide's samples, and enough of them for a training that the budget can end.
    enough = {"technique": ["sampling"], "batch_size": 2 * MIN_UNIQUE_SCHEDULES}
    result = tune(
        str(generator), parameters=SMALL, budget_s=1000.0, rounds=1, run_folder=folder, listen=listen, **enough
    )
    assert result.outcome is Outcome.BUDGET_SPENT
    assert not result.best.confirmed and result.best.header is not None
    assert "The budget ended the play-off." in heard
    assert any(text.startswith("The budget ended before the last training") for text in heard)


def test_a_search_that_is_too_slow_for_the_budget_names_it(
    tune: Tune, examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(build_limits._BUDGET_SHARES, "search_s", (0.002, 1.0))
    monkeypatch.setattr(generator_spec, "_INSPECTION_S", 1.0)  # it hangs when it is asked for its arguments, too
    advice = "The budget of 1000 s leaves 2 s for one search; raise --budget or set --search-limit"
    with pytest.raises(GeneratorError, match=f"Generator hangs did not end within 2 s. {advice}"):
        tune(str(examples / "broken" / "hangs.py"), budget_s=1000.0, run_folder=tmp_path / "run")
    with pytest.raises(GeneratorError, match=r"Generator hangs did not end within 1 s\.$"):
        tune(str(examples / "broken" / "hangs.py"), budget_s=1000.0, search_limit_s=1.0, run_folder=tmp_path / "asked")
