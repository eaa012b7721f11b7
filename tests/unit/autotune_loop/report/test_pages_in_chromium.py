"""The pages as their readers have them: light, dark, narrow, without JavaScript, by keyboard, with a screen reader."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

import pytest

from halide_autotune.autotune_loop.report.comparison import compare_runs
from halide_autotune.autotune_loop.report.comparison_page import print_comparison
from halide_autotune.autotune_loop.report.recorded_run import read_recorded_run
from halide_autotune.autotune_loop.report.run_page import PageOptions, print_page
from halide_autotune.autotune_loop.report.schedule_table import COLUMNS
from halide_autotune.autotune_loop.specification.options import RunOptions
from tests.chromium_page import CHROMIUM, ChromiumPage
from tests.explained_schedules import explain_folder
from tests.recorded_run_folder import write_run_folder
from tests.run_specs import make_spec, make_task

pytestmark = [pytest.mark.toolchain, pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")]

READY = "document.body && document.body.dataset.readyMs"
PAGES = ("run", "empty run", "comparison")
READERS: Mapping[str, Mapping[str, Any]] = {
    "light": {},
    "dark": {"dark": True},
    "narrow": {"width_px": 390},
    "without scripts": {"scripts": False},
}
# What is wrong by the rules of WCAG 2.1 AA and by axe's best practices, and what it could not decide of contrasts.
AXE = """axe.run(document, { resultTypes: ["violations", "incomplete"] }).then((found) => [
  ...found.violations, ...found.incomplete.filter((one) => one.id === "color-contrast"),
].map((one) => `${one.id}: ${one.nodes[0].html.slice(0, 200)} ${one.nodes[0].failureSummary}`))"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The address of each page."""
    folder = tmp_path_factory.mktemp("pages")
    write_run_folder(folder / "one", 80, spec=make_spec(make_task("harris"), make_task("blur")))
    write_run_folder(folder / "two", 20, spec=make_spec(make_task("harris"), options=RunOptions.of(batch_size=16)))
    write_run_folder(folder / "empty", 0)
    one, two, empty = (read_recorded_run(folder / name) for name in ("one", "two", "empty"))
    explain_folder(folder / "one")
    options = PageOptions({"by hand": 3.0})
    texts = {
        "run": print_page(one, options, {"ship it": "sdk ship tuned/harris-arm64-1 -o schedules"}),
        "empty run": print_page(empty, PageOptions()),
        "comparison": print_comparison(compare_runs([one, two]), {"harris": "sdk bench harris.py --play-off"}),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text)
    return {name: (folder / f"{name}.html").as_uri() for name in texts}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromiumPage]:
    with ChromiumPage(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture
def run(browser: ChromiumPage, pages: dict[str, str]) -> ChromiumPage:
    """The browser with the page of a run, for a reader with no wishes."""
    browser.show_as()
    browser.open(pages["run"])
    browser.wait_for(READY)
    return browser


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("reader", READERS)
def test_everybody_can_read_the_page(browser: ChromiumPage, pages: dict[str, str], page: str, reader: str) -> None:
    browser.show_as(**READERS[reader])
    browser.open(pages[page])
    browser.wait_for(READY if READERS[reader].get("scripts", True) else "document.readyState === 'complete'")
    assert browser.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    browser.let_scripts_run()
    browser.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    browser.evaluate((files("axe_core_python") / "axe.min.js").read_text() + "; 0")
    assert browser.evaluate(AXE) == []
    assert browser.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_plots_have_the_colours_of_the_page(browser: ChromiumPage, pages: dict[str, str], scheme: str) -> None:
    browser.show_as(dark=scheme == "light")
    browser.open(pages["comparison"])
    browser.wait_for(READY)
    browser.show_as(dark=scheme == "dark")  # the reader has another wish while the page is open
    page = {"light": "#ffffff", "dark": "#14181d"}[scheme]
    plot = "Bokeh.documents[0].roots().find((each) => 'x_range' in each)"
    browser.wait_for(f"{plot}.background_fill_color === '{page}' && {plot}.border_fill_color === '{page}'")
    assert browser.evaluate("colour('page')") == page
    text = browser.evaluate(f"[{plot}.left[0].major_label_text_color, {plot}.below[0].axis_label_text_color]")
    assert text == [browser.evaluate("colour('ink')")] * 2 and text[0] != page


def test_a_logarithmic_axis_is_labelled_where_the_data_are(run: ChromiumPage) -> None:
    for low, factor in itertools.product([0.031, 0.8, 4.6, 11.0, 95.0], [1.002, 1.1, 2.0, 9.0, 80.0, 30_000.0]):
        ticks = run.evaluate(f"logTicks({low}, {low * factor})")
        assert 3 <= len(ticks) <= 12 and ticks == sorted(set(ticks))
        assert low <= ticks[0] and ticks[-1] <= low * factor
        # Nowhere is half of the axis without a label.
        places = [low, *ticks, low * factor]
        assert max(b / a for a, b in itertools.pairwise(places)) < factor**0.5, (low, factor, ticks)


def test_the_axes_of_a_plot_follow_it_when_it_is_zoomed(run: ChromiumPage) -> None:
    ticks = run.evaluate(
        "const plot = Bokeh.documents[0].roots().find((each) => 'x_range' in each);"
        "plot.y_range.setv({ start: 5.01, end: 5.09 }); plot.left[0].ticker.ticks"
    )
    assert ticks == [5.02, 5.04, 5.06, 5.08]


def test_a_header_is_copied_with_and_without_a_clipboard(run: ChromiumPage) -> None:
    header = run.evaluate("document.getElementById('header-0').textContent")
    assert "apply_schedule" in header
    for write in ("async (text) => { window.copied = text; }", "() => Promise.reject(new Error('forbidden'))"):
        clipboard = f"{{ configurable: true, value: {{ writeText: {write} }} }}"
        run.evaluate(f"Object.defineProperty(navigator, 'clipboard', {clipboard}); 0")
        run.evaluate("document.querySelector('[data-copies=header-0]').click()")
        run.wait_for("/^(Copied|Selected)/.test(document.getElementById('told').textContent)")
        run.evaluate("document.getElementById('told').textContent = ''")
    assert run.evaluate("window.copied") == header
    assert run.evaluate("getSelection().toString()").strip() == header.strip()


def test_the_keyboard_reaches_what_a_mouse_does(run: ChromiumPage) -> None:
    run.press("Tab")
    assert run.evaluate("document.activeElement.textContent") == "Skip to the content"
    assert run.evaluate("document.activeElement.getBoundingClientRect().left >= 0")
    run.press("Enter")
    assert run.evaluate("document.activeElement.id") == "main"
    run.evaluate("document.querySelector('#schedules tbody button').focus()")
    assert run.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    run.press("Enter")
    assert "get_func" in run.evaluate("document.querySelector('#schedules pre').textContent")
    run.evaluate("document.querySelectorAll('#schedules th button')[2].focus()")
    run.press("Enter")
    assert run.evaluate("document.querySelector('[aria-sort]').ariaSort") == "ascending"
    assert run.evaluate("document.querySelector('#schedules pre')") is None


def test_schedules_are_in_the_order_of_a_column_and_those_without_a_number_come_last(run: ChromiumPage) -> None:
    column = [name for name, _ in COLUMNS].index("predicted (ms)")
    run.evaluate(f"rows.forEach((row) => {{ if (row.index % 3 === 0) row.cells[{column}] = null; }})")
    for is_down in (False, True):
        run.evaluate(f"document.querySelectorAll('#schedules th button')[{column}].click()")
        cells = run.evaluate(
            f"[...document.querySelectorAll('#schedules tbody tr')].map((row) => row.cells[{column}].textContent)"
        )
        numbers = [float(cell) for cell in cells if cell]
        assert len(cells) == 80 and len(numbers) == 53
        assert numbers == sorted(numbers, reverse=is_down) and cells[53:] == [""] * 27


def test_the_legend_hides_a_line(run: ChromiumPage) -> None:
    shown = "Bokeh.documents[0].roots()[0].renderers.find((each) => each.name === 'best so far').visible"
    assert run.evaluate(shown)
    run.evaluate("document.querySelector('[data-name=\"best so far\"]').click()")
    assert not run.evaluate(shown)
    assert run.evaluate("document.querySelector('[data-name=\"best so far\"]').ariaPressed") == "false"


def test_without_scripts_the_page_has_its_words(browser: ChromiumPage, pages: dict[str, str]) -> None:
    browser.show_as(scripts=False)
    browser.open(pages["run"])
    browser.wait_for("document.readyState === 'complete'")
    text = browser.evaluate("document.body.innerText")
    assert "sdk ship tuned/harris-arm64-1 -o schedules" in text and "inline void apply_schedule_harris" in text
    assert "reached with schedule" in text and "Copy" not in text and "The first 50 of 80 schedules." in text
    assert browser.evaluate("document.querySelectorAll('#schedules tbody tr').length") == 50
