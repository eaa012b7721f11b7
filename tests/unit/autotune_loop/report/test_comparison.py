"""Runs of one pipeline side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.report.comparison import Comparison, compare_runs
from halide_autotune.autotune_loop.report.comparison_page import print_comparison
from halide_autotune.autotune_loop.report.loops_text import loops_difference
from halide_autotune.autotune_loop.report.recorded_run import RecordedRun, read_recorded_run
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.targets.errors import UsageError
from tests.chromium_page import CHROMIUM, ChromiumPage
from tests.recorded_run_folder import write_run_folder
from tests.run_specs import make_spec, make_task


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RecordedRun]:
    """Two that differ in the batch size, one by another clock, one without schedules, and one of something else."""
    folder = tmp_path_factory.mktemp("runs")
    small = make_spec(make_task("harris"), options=RunOptions.of(batch_size=16))
    write_run_folder(folder / "one", 40)
    write_run_folder(folder / "two", 30, spec=small)
    write_run_folder(folder / "simulated", 10, clock="simulated")
    write_run_folder(folder / "empty", 0)
    write_run_folder(folder / "other", 5, spec=make_spec(make_task("blur")))
    return {path.name: read_recorded_run(path) for path in folder.iterdir()}


@pytest.fixture(scope="module")
def two(runs: dict[str, RecordedRun]) -> Comparison:
    (found,) = compare_runs([runs["one"], runs["two"]])
    return found


def test_what_each_run_found_is_side_by_side(two: Comparison) -> None:
    assert (two.name, [one.label for one in two.runs]) == ("harris", ["one", "two"])
    assert two.why_not_compared == ""
    first = two.runs[0]
    assert (first.found_by == "sampling" and "Func" in first.loops) or first.loops
    assert first.by_device["one"][0] + first.by_device["two"][0] == 40
    assert sum(row.timed for row in first.techniques) == 40


def test_a_curve_only_falls_and_ends_at_the_fastest(two: Comparison) -> None:
    for one in two.runs:
        times_ms = [time_ms for _, time_ms in one.curve]
        assert times_ms == sorted(times_ms, reverse=True) and times_ms[-1] == one.task.fastest.median_ms
        assert one.best_ms_after(one.run.duration_s) == one.task.fastest.median_ms
        assert one.best_ms_after(-1.0) is None and one.best_ms_after(one.run.duration_s + 1) is None


def test_only_settings_that_differ_are_told(two: Comparison) -> None:
    assert two.settings["spec.options.search.batch_size"] == ("32", "16")
    assert not any("halide_version" in key for key in two.settings)


def test_times_of_two_clocks_or_devices_do_not_compare(runs: dict[str, RecordedRun]) -> None:
    (found,) = compare_runs([runs["one"], runs["simulated"]])
    assert found.why_not_compared == "The times were measured with different clocks: simulated, wall."
    assert found.to_dict()["times_compare"] is False


def test_times_of_two_sizes_do_not_compare(tmp_path: Path) -> None:
    for width in ("512", "1536"):
        spec = make_spec(make_task("harris", parameters={"width": width}))
        write_run_folder(tmp_path / width, 3, spec=spec)
    (found,) = compare_runs([read_recorded_run(tmp_path / width) for width in ("512", "1536")])
    assert found.why_not_compared == "The runs have different parameters or sizes: width=1536; width=512."
    assert found.settings["spec.tasks.0.parameters.width"] == ("512", "1536")


def test_runs_of_different_pipelines_are_refused_by_what_they_tuned(runs: dict[str, RecordedRun]) -> None:
    with pytest.raises(UsageError, match=r"one: harris; other: blur; empty: nothing yet"):
        compare_runs([runs["one"], runs["other"], runs["empty"]])


def test_runs_of_equal_names_are_told_apart(tmp_path: Path) -> None:
    for folder in ("monday/run", "friday/run"):
        write_run_folder(tmp_path / folder, 4)
    read = [read_recorded_run(tmp_path / folder) for folder in ("monday/run", "friday/run")]
    assert [one.label for one in compare_runs(read)[0].runs] == ["monday/run", "friday/run"]
    assert [one.label for one in compare_runs([read[0]] * 2)[0].runs] == ["run (1)", "run (2)"]


def test_a_run_that_has_nothing_in_common_is_left_out(runs: dict[str, RecordedRun]) -> None:
    (found,) = compare_runs([runs["one"], runs["other"], runs["two"]])
    assert [one.label for one in found.runs] == ["one", "two"]


def test_the_difference_is_that_of_the_loops() -> None:
    text = loops_difference({"one": "for y\n  for x", "two": "for y\n  vectorized x", "three": "for y\n  for x"})
    assert "-  for x\n+  vectorized x" in text and text.endswith("one and three have the same loops.")


def test_everything_is_json(two: Comparison) -> None:
    told = json.loads(json.dumps(two.to_dict()))
    assert [one["run"] for one in told["runs"]] == ["one", "two"]
    assert told["runs"][0]["speed_up"] == 1.5 and told["runs"][0]["best_so_far"]


@pytest.mark.toolchain
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_the_page_opens_without_a_network(two: Comparison, tmp_path: Path) -> None:
    page = tmp_path / "compare.html"
    page.write_text(print_comparison([two]))
    with ChromiumPage(tmp_path) as browser:
        browser.open(page.as_uri())
        browser.wait_for("document.querySelector('#curves-0')?.children.length")
        assert "batch_size" in browser.evaluate("document.body.textContent")
        assert browser.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert browser.complaints == []


def test_a_run_is_a_table(runs: dict[str, RecordedRun]) -> None:
    frame = runs["one"].to_frame()
    assert len(frame) == 40 and frame["time_ms"].min() == runs["one"].tasks[0].fastest.median_ms
    assert set(frame["found_by"]) >= {"sampling"} and (frame["elapsed_s"] >= 0).all()
    assert len(runs["empty"].to_frame()) == 0
