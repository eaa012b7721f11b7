"""One run for several sizes: every candidate is checked and timed at each."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.events import Event, Notice
from halide_autotune.autotune_loop.run.result import Outcome, TuneResult
from halide_autotune.sdk import resume
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import GeneratorError, UsageError
from tests.end_to_end.conftest import SMALL, Tune
from tests.end_to_end.run_files import check_run_folder, rows

MAIN, LARGER = "input=192x96x3 output=192x96x3", "input=384x192x3 output=384x192x3"


@pytest.fixture(scope="module")
def run(tune: Tune, examples: Path, tmp_path_factory: pytest.TempPathFactory) -> TuneResult:
    folder = tmp_path_factory.mktemp("sizes") / "run"
    return tune(
        str(examples / "separable_filter.py"),
        parameters=SMALL,
        also_sizes=["input=384x192x3"],
        technique=["sampling"],
        rounds=1,
        run_folder=folder,
    )


def test_what_is_published_is_the_geometric_mean(run: TuneResult) -> None:
    assert run.outcome is Outcome.FINISHED and run.best.confirmed
    check_run_folder(run, "separable_filter", "wall")
    tuned = run.best.tuned
    assert tuned is not None and list(tuned.by_size_ms) == [MAIN, LARGER]
    assert tuned.words.endswith(", geometric mean of 2 sizes")
    turns = run.best.verdict and run.best.verdict.turns
    per_turn = rows(
        run.run_folder,
        f"SELECT size, median_ms FROM size_times WHERE purpose='play-off' AND symbol='{run.best.published.symbol}'",
    )
    for size, time_ms in tuned.by_size_ms.items():
        times_ms = sorted([median_ms for of, median_ms in per_turn if of == size][-(turns or 0) :])
        assert times_ms[0] <= time_ms <= times_ms[-1]
    assert run.best.header is not None
    note = run.best.header.with_name("best.separable_filter.benchmark.txt").read_text()
    assert f"ms at {MAIN}\n" in note and f"ms at {LARGER}\n" in note
    told = json.loads(json.dumps(run.to_dict()))["tuned"][0]
    assert list(told["tuned_by_size_ms"]) == [MAIN, LARGER] == list(told["default_by_size_ms"])


def test_each_time_is_the_geometric_mean_of_those_at_the_sizes(run: TuneResult) -> None:
    measured = rows(run.run_folder, "SELECT symbol, median_ms, output_checked FROM measurements WHERE purpose='sample'")
    assert len(measured) >= 3
    for symbol, median_ms, checked in measured:
        times = rows(
            run.run_folder, f"SELECT size, median_ms FROM size_times WHERE purpose='sample' AND symbol='{symbol}'"
        )
        assert checked == 1 and [size for size, _ in times] == [MAIN, LARGER]
        assert median_ms == pytest.approx(math.prod(time_ms for _, time_ms in times) ** 0.5)


def test_an_unconfirmed_winner_has_its_times_too(run: TuneResult) -> None:
    """What is published before the play-off, and stays where the devices are lost, has them from the rounds."""
    (row,) = rows(run.run_folder, "SELECT published FROM published ORDER BY rowid LIMIT 1")
    first = json.loads(row[0])
    assert not first["confirmed"]
    by_size_ms = first["tuned"]["by_size_ms"]
    assert list(by_size_ms) == [MAIN, LARGER]
    assert math.prod(by_size_ms.values()) ** 0.5 == pytest.approx(first["tuned"]["median_ms"])


def test_a_resumed_run_goes_on_at_all_sizes(run: TuneResult, settings: Settings) -> None:
    events: list[Event] = []
    timed = run.totals.samples_timed
    again = resume(run.run_folder, changes={"rounds": 2}, listen=events.append, settings=settings)
    assert again.totals.samples_timed > timed
    assert any(isinstance(event, Notice) and f"Resumed with {timed} timed" in event.text for event in events)
    counts = rows(run.run_folder, "SELECT size, count(*) FROM size_times WHERE purpose='sample' GROUP BY size")
    assert sorted(counts) == sorted([(MAIN, again.totals.samples_timed), (LARGER, again.totals.samples_timed)])
    assert again.best.tuned is not None and list(again.best.tuned.by_size_ms) == [MAIN, LARGER]
    with pytest.raises(UsageError, match="This run was made with --also-size input=384x192x3"):
        resume(run.run_folder, changes={"also_sizes": ["input=512x32x3"]}, settings=settings)


def test_several_pipelines_at_several_sizes_are_refused(tune: Tune, examples: Path, tmp_path: Path) -> None:
    asked = {"also_sizes": ["input=384x192x3"], "run_folder": tmp_path / "run"}
    with pytest.raises(UsageError, match="--also-size is for one generator with one set of parameters"):
        tune(str(examples / "separable_filter.py"), argsets=[["width=64"], ["width=128"]], **asked)
    assert not (tmp_path / "run").exists()


def test_a_schedule_that_does_not_fit_a_further_size_has_failed(tune: Tune, examples: Path, tmp_path: Path) -> None:
    """Nothing is published that refuses a size which was asked for."""
    events: list[Event] = []
    with pytest.raises(GeneratorError, match="At input=24x16x3 output=24x16x3: ") as caught:
        tune(
            str(examples / "separable_filter.py"),
            parameters=("width=1024", "height=256"),
            also_sizes=["output=24x16x3"],
            technique=["sampling"],
            rounds=1,
            run_folder=tmp_path / "run",
            listen=events.append,
        )
    assert "None of the first schedules of separable_filter could be timed" in caught.value.message
    assert any(isinstance(event, Notice) and "may not fit a smaller size" in event.text for event in events)
    reasons = rows(tmp_path / "run", "SELECT DISTINCT reason FROM failures WHERE stage='measure'")
    assert reasons == [("Halide error",)]
