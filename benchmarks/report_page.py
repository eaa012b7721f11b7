"""How large the report of a long run is, and how soon it is there in a browser.

    python -m benchmarks.report_page [--samples 3000] [--opens 5] [--json]

The run is a made one in the real layout, its schedules are real. A page is opened in headless Chromium, each time in a
new browser; its time runs from the navigation's start until every plot is drawn and every schedule can be searched.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

from halide_autotune.autotune_loop.report.recorded_run import read_recorded_run
from halide_autotune.autotune_loop.report.run_page import PageOptions, print_page
from tests.chromium_page import ChromiumPage
from tests.recorded_run_folder import write_run_folder

LIMIT_BYTES = 5_000_000
LIMIT_S = 2.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=3000)
    parser.add_argument("--opens", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        write_run_folder(run, options.samples)
        started_s = time.monotonic()
        page = print_page(read_recorded_run(run), PageOptions()).encode()
        drawing_s = time.monotonic() - started_s
        path = Path(folder) / "report.html"
        path.write_bytes(page)
        opened_s = [open_page(path, Path(folder) / f"browser{number}") for number in range(options.opens)]
    told = {
        "samples": options.samples,
        "page_bytes": len(page),
        "share_of_5_MB": len(page) / LIMIT_BYTES,
        "drawing_s": drawing_s,
        "open_median_s": statistics.median(opened_s),
        "open_slowest_s": max(opened_s),
        "share_of_2_s": statistics.median(opened_s) / LIMIT_S,
    }
    print(
        json.dumps(told, indent=2) if options.json else "\n".join(f"{key}: {value:.4g}" for key, value in told.items())
    )


def open_page(path: Path, profile: Path) -> float:
    profile.mkdir()
    with ChromiumPage(profile) as browser:
        browser.open(path.as_uri())
        return float(browser.wait_for("document.body && document.body.dataset.readyMs")) / 1e3


if __name__ == "__main__":
    main()
