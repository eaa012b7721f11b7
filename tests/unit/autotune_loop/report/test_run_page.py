"""The report of a run: what it holds, and that it works in a real browser without a network."""

from __future__ import annotations

import os
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.report.recorded_run import read_recorded_run, run_version
from halide_autotune.autotune_loop.report.run_figures import correlation_by_round
from halide_autotune.autotune_loop.report.run_page import PageOptions, print_page
from halide_autotune.targets.errors import RunFolderError
from tests.chromium_page import CHROMIUM, ChromiumPage
from tests.explained_schedules import explain_folder
from tests.recorded_run_folder import write_run_folder
from tests.run_specs import make_spec, make_task

SAMPLES = 80
_LARGEST_PAGE_BYTES = 5_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("runs") / "run"
    write_run_folder(made, SAMPLES)
    return made


def test_a_run_is_read_as_it_was_written(folder: Path) -> None:
    run = read_recorded_run(folder)
    assert len(run.samples) == SAMPLES
    assert [s.candidate.sample for s in run.samples[:2]] == ["batch_0_0/0", "batch_0_0/1"]
    assert run.samples[0].candidate.is_default and not any(s.candidate.is_default for s in run.samples[1:])
    assert run.failures == {("search", "crashed", "It <died>."): 1}
    assert [(t.accuracy_before, t.accuracy_after) for t in run.trainings] == [(0.5, 0.75)]
    assert {r.hottest_c for r in run.readings} == {41.5}
    published = run.headers[0].published
    assert (published.message, published.by_device) == (
        "It is 1.5 times as fast.",
        {"one": (6.5, 4.0), "two": (None, 4.5)},
    )
    assert run.headers[0].text == (folder / "samples" / "best.harris.schedule.h").read_text()
    (task,) = run.tasks
    assert task.fastest.median_ms == min(s.median_ms for s in run.samples) and len(task.samples) == SAMPLES
    correlations = correlation_by_round(task.samples)
    assert set(correlations) == {0, 1, 2} and all(0.5 < value <= 1 for value in correlations.values())


def test_reading_changes_nothing_and_works_without_permission_to_write(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    copy.chmod(0o555)
    (copy / "tuning.db").chmod(0o444)
    try:
        assert len(read_recorded_run(copy).samples) == SAMPLES
    finally:
        copy.chmod(0o755)
    assert len(read_recorded_run(copy).samples) == SAMPLES
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before


def test_the_version_changes_when_a_live_run_commits(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    before = run_version(copy)
    with sqlite3.connect(copy / "tuning.db") as connection:
        connection.execute("INSERT INTO batches VALUES (9, 0, '{}', 1.0)")
    assert run_version(copy) != before


@pytest.mark.parametrize("damage", ["not a database", "torn", "text for a number", "no json", "lost", "version"])
def test_a_damaged_run_is_one_message(folder: Path, tmp_path: Path, damage: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    path = copy / "tuning.db"
    statements = {
        "text for a number": "UPDATE measurements SET median_ms = 'soon'",
        "no json": "UPDATE measurements SET canary_s = '['",
        "version": "PRAGMA user_version = 99",
    }
    if damage == "not a database":
        path.write_bytes(b"x" * 5000)
    elif damage == "torn":
        os.truncate(path, path.stat().st_size // 2)
    elif damage == "lost":
        path.unlink()
    else:
        with sqlite3.connect(path) as connection:
            connection.execute(statements[damage])
    before = sorted(copy.iterdir())
    with pytest.raises(RunFolderError) as caught:
        read_recorded_run(copy)
    assert sorted(copy.iterdir()) == before
    assert "tuning.db" in str(caught.value) and "\n" not in str(caught.value)


def test_nothing_that_a_run_says_becomes_part_of_the_page(tmp_path: Path) -> None:
    hostile = "</script><img src=x onerror=alert(1)>"
    task = make_task("harris")
    task = replace(task, reference=replace(task.reference, name=hostile))
    write_run_folder(tmp_path / "run", 3, spec=make_spec(task))
    run = read_recorded_run(tmp_path / "run")
    run = replace(run, samples=tuple(replace(sample, device=hostile) for sample in run.samples))
    header = replace(run.headers[0], text=hostile, published=replace(run.headers[0].published, message=hostile))
    run = replace(run, headers={0: header}, failures={(hostile, hostile, hostile): 1})
    explain_folder(tmp_path / "run", name=hostile)
    page = print_page(run, PageOptions({hostile: 1.0}), {hostile: hostile})
    assert hostile not in page and "<img" not in page and page.count("&lt;img") > 15


def test_the_page_shows_why_the_winner_is_fast_if_it_was_explained(folder: Path, tmp_path: Path) -> None:
    assert "Why it is fast" not in print_page(read_recorded_run(folder), PageOptions())
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    explain_folder(copy, name="<b>sobel")
    page = print_page(read_recorded_run(copy), PageOptions())
    assert "Why it is fast" in page and "Memory is &lt;full&gt;." in page and "Against the default:" in page
    assert "<b>&lt;b&gt;sobel</b> 75 %" in page and "within out in 40 pieces of 32x10" in page
    assert "How near to what the device can do" in page and "% of the roof" in page


def test_a_header_that_was_published_since_is_not_explained(folder: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    explain_folder(copy, sha256="0" * 64)
    assert "Why it is fast" not in print_page(read_recorded_run(copy), PageOptions())


def test_a_run_that_has_timed_nothing_yet_has_a_page(tmp_path: Path) -> None:
    write_run_folder(tmp_path / "run", 0)
    run = read_recorded_run(tmp_path / "run")
    assert run.tasks == []
    assert "No schedule has been timed yet" in print_page(run, PageOptions())


def test_emulated_times_are_called_so(tmp_path: Path) -> None:
    write_run_folder(tmp_path / "run", 3, clock="emulated")
    assert "All times are emulated time" in print_page(read_recorded_run(tmp_path / "run"), PageOptions())


@pytest.mark.toolchain
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_the_page_works_in_a_browser(folder: Path, tmp_path: Path) -> None:
    page = print_page(read_recorded_run(folder), PageOptions({"by hand": 3.0}))
    assert len(page.encode()) < _LARGEST_PAGE_BYTES
    (tmp_path / "report.html").write_text(page)
    with ChromiumPage(tmp_path) as browser:
        browser.open((tmp_path / "report.html").as_uri())
        browser.wait_for("document.body && document.body.dataset.readyMs")
        rows = "document.querySelectorAll('#schedules tbody tr')"
        # Bokeh draws into shadow roots: each plot has a canvas with something on it.
        drawn = browser.evaluate(
            "[...document.querySelectorAll('.drawing')].map(p => p.getBoundingClientRect().height > 100"
            " && p.children.length > 0)"
        )
        assert len(drawn) == 7 and all(drawn)
        assert browser.evaluate(f"{rows}.length") == SAMPLES
        times = browser.evaluate(f"[...{rows}].map(r => +r.cells[2].textContent)")
        assert times == sorted(times)
        search = "var s = document.getElementById('search'); s.value = '{}'; s.dispatchEvent(new Event('input'));"
        browser.evaluate(search.format("batch_1_0/7"))
        assert browser.evaluate(f"{rows}.length") == 1
        browser.evaluate("document.querySelector('#schedules tbody tr').click()")
        assert "It is 1.5 times as fast." in browser.evaluate("document.body.textContent")
        assert "get_func" in browser.evaluate("document.querySelector('#schedules pre').textContent")
        browser.evaluate(search.format("vectorize batch_2_0"))
        assert 0 < browser.evaluate(f"{rows}.length") < SAMPLES
        assert browser.complaints == []
