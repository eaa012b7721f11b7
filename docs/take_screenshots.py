"""Takes the documentation's pictures of pages: `python -m docs.take_screenshots [RUN RUN]` (or `make screenshots`).

The pages are of two recorded runs of one generator; without them an example is tuned twice, which takes three minutes.
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import sdk
from tests.chromium_page import ChromiumPage

DOCS = Path(__file__).parent
_EXAMPLE = DOCS.parent / "examples" / "corner_detector.py"
_RUNS = {"all-techniques": {"budget_s": 90.0}, "sampling": {"budget_s": 60.0, "technique": ("sampling",)}}
_LARGEST_BYTES = 150_000


@dataclass(frozen=True)
class Picture:
    """What a picture shows.

    Attributes:
        page: `report` or `comparison`.
        element: at the top of the window, by a selector of CSS.
    """

    page: str
    element: str = "body"
    width_px: int = 1280
    height_px: int = 800
    dark: bool = False


PICTURES = {
    "report.png": Picture("report"),
    "report-rounds.png": Picture("report", "#rounds-0", dark=True),
    "report-narrow.png": Picture("report", width_px=390),
    "comparison.png": Picture("comparison"),
}


def main() -> None:
    """Make the pages and take the pictures."""
    runs = [Path(name).absolute() for name in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(runs[0].parents[1] if runs else folder)  # so that commands in the pages have short paths
        runs = runs or _tuned_runs()
        pages = {"report": Path(folder) / "report.html", "comparison": Path(folder) / "comparison.html"}
        sdk.report(runs[0], pages["report"])
        sdk.compare(runs, pages["comparison"])
        with ChromiumPage(Path(folder)) as browser:
            for name, picture in PICTURES.items():
                _take(browser, pages[picture.page], picture, DOCS / name)


def _tuned_runs() -> list[Path]:
    example = Path(_EXAMPLE.name)
    example.write_bytes(_EXAMPLE.read_bytes())
    for name, options in _RUNS.items():
        sdk.autotune(
            str(example),
            target="host",
            options=sdk.RunOptions.of(**options),
            run_folder=Path("tuned").absolute() / name,
        )
    return [Path("tuned").absolute() / name for name in _RUNS]


def _take(browser: ChromiumPage, page: Path, picture: Picture, file: Path) -> None:
    browser.show_as(width_px=picture.width_px, height_px=picture.height_px, dark=picture.dark)
    browser.open(page.as_uri())
    browser.wait_for("document.body && document.body.dataset.readyMs")
    browser.evaluate("document.documentElement.style.scrollbarWidth = 'none'")
    browser.evaluate(f"document.querySelector({picture.element!r}).scrollIntoView()")
    # Two frames, so that what has changed is painted.
    browser.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    image = browser.screenshot()
    if len(image) > _LARGEST_BYTES:
        sys.exit(f"{file.name} would have {len(image)} bytes, more than {_LARGEST_BYTES}: show less on it.")
    file.write_bytes(image)


if __name__ == "__main__":
    main()
