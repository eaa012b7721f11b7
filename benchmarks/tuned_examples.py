"""What tuning gains on the examples: tuned against Adams2019's default, Mullapudi2016's and the manual schedule.

    python -m benchmarks.tuned_examples --target x86-64 --budget-s 60

Every example is tuned for the same time; then all four schedules are timed side by side in turns.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from pathlib import Path

import sdk

EXAMPLES = Path(__file__).parents[1] / "examples"
COMPETITORS = ("adams2019", "mullapudi2016", "own")


def main() -> int:
    """Print a table of medians in milliseconds, and the geometric means of the speed-ups."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=sorted(path.stem for path in EXAMPLES.glob("*.cpp")))
    parser.add_argument("--target", default="x86-64")
    parser.add_argument("--budget-s", type=float, default=60.0)
    arguments = parser.parse_args()
    print(f"{'example':20}{'tuned':>10}" + "".join(f"{name:>15}" for name in COMPETITORS) + f"{'samples':>10}")
    logs: dict[str, list[float]] = {name: [] for name in COMPETITORS}
    for name in arguments.names:
        times_ms, samples = tune_and_compare(EXAMPLES / f"{name}.cpp", arguments.target, arguments.budget_s)
        tuned_ms = times_ms[0]
        cells = ""
        for competitor, time_ms in zip(COMPETITORS, times_ms[1:], strict=True):
            if tuned_ms is None or time_ms is None:
                cells += f"{'failed':>15}"
                continue
            logs[competitor].append(math.log(time_ms / tuned_ms))
            cells += f"{time_ms:>9.3f} {time_ms / tuned_ms:4.2f}×"
        print(f"{name:20}{'failed' if tuned_ms is None else f'{tuned_ms:.3f}':>10}{cells}{samples:>10}", flush=True)
    for competitor, values in logs.items():
        if values:
            print(f"geometric mean against {competitor}: {math.exp(sum(values) / len(values)):.2f}×")
    return 0


def tune_and_compare(generator: Path, target: str, budget_s: float) -> tuple[list[float | None], int]:
    """Medians of the tuned schedule and the competitors, and how many schedules were timed on the way."""
    with tempfile.TemporaryDirectory(prefix="sdk-examples-") as folder:
        run_folder = Path(folder) / "run"
        result = sdk.autotune(
            str(generator),
            target=target,
            options=sdk.RunOptions.of(no_history=True, budget_s=budget_s, weights="baseline"),
            run_folder=run_folder,
        )
        if result.best.header is None:
            return [None] * (1 + len(COMPETITORS)), result.totals.samples_timed
        compared = sdk.bench(str(generator), [str(result.best.header), *COMPETITORS], target=target)
        return [schedule.median_ms for schedule in compared], result.totals.samples_timed


if __name__ == "__main__":
    sys.exit(main())
