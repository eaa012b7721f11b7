"""Whether a winner keeps its word: its stated time against fresh processes, later.

    python -m benchmarks.retimed_header --budget-s 40 --later-s 60

Each example is tuned on this machine. After a while its header is built and timed anew, in processes that share nothing
with the run. A header holds when the time is within 3 % of the stated one, or between the fastest and the slowest
process of its play-off, which is the spread that is stated with it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import sdk

EXAMPLES = Path(__file__).parents[1] / "examples"
NEAR = 0.03


@dataclass(frozen=True)
class Retimed:
    """One header, stated and timed again.

    Attributes:
        stated_range_ms: the fastest and the slowest process of the play-off.
        later_ms: the median of a process each, later.
        speed_up, later_speed_up: against the default schedule, then and now.
    """

    name: str
    stated_ms: float
    stated_range_ms: tuple[float, float]
    later_ms: tuple[float, ...]
    speed_up: float | None
    later_speed_up: float | None

    @property
    def kept(self) -> int:
        """How many of the later processes are near, or within the range."""
        low_ms, high_ms = self.stated_range_ms
        return sum(
            abs(ms / self.stated_ms - 1) <= NEAR or low_ms * (1 - 1e-9) <= ms <= high_ms * (1 + 1e-9)
            for ms in self.later_ms
        )


def main() -> int:
    """Tune, wait, time again; exit code 1 when the median of the later processes of an example is neither."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=["separable_filter", "stencil_chain", "matrix_product"])
    parser.add_argument("--target", default="host")
    parser.add_argument("--budget-s", type=float, default=40.0)
    parser.add_argument("--later-s", type=float, default=20.0, help="how long nothing is done in between")
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sdk-retimed-") as folder:
        runs = {
            name: sdk.autotune(
                str(EXAMPLES / f"{name}.py"),
                target=arguments.target,
                options=sdk.RunOptions.of(no_history=True, budget_s=arguments.budget_s),
                run_folder=Path(folder) / name,
            )
            for name in arguments.names
        }
        time.sleep(arguments.later_s)
        results = [_retimed(name, run, arguments.target, arguments.processes) for name, run in runs.items()]
    if arguments.json:
        print(json.dumps([{**asdict(result), "kept": result.kept} for result in results], indent=2))
    else:
        for result in results:
            print(_text(result))
    return 0 if all(result.kept > len(result.later_ms) / 2 for result in results) else 1


def _retimed(name: str, run: sdk.TuneResult, target: str, processes: int) -> Retimed:
    best = run.best
    if best.header is None or best.tuned is None or best.tuned.range_ms is None:
        raise SystemExit(f"{name}: the play-off was not held; give it a longer --budget-s")
    default = run.run_folder / "samples" / "batch_0_0" / "0" / f"{best.header.name.split('.')[1]}.schedule.h"
    header, old = sdk.bench(
        str(EXAMPLES / f"{name}.py"), [str(best.header), str(default)], target=target, turns=processes
    )
    later_ms = tuple(turn.median_s * 1e3 for turn in header.turns)
    gain = old.median_ms / header.median_ms if old.median_ms and header.median_ms else None
    return Retimed(name, best.tuned.median_ms, best.tuned.range_ms, later_ms, best.speed_up, gain)


def _text(result: Retimed) -> str:
    low_ms, high_ms = result.stated_range_ms
    later = ", ".join(f"{ms:.4g} ({ms / result.stated_ms - 1:+.1%})" for ms in result.later_ms)
    gains = [f"{gain:.2f}" if gain else "unknown" for gain in (result.speed_up, result.later_speed_up)]
    return (
        f"{result.name}: stated {result.stated_ms:.4g} ms ({low_ms:.4g} to {high_ms:.4g}); later {later}:"
        f" {result.kept} of {len(result.later_ms)} within; speed-up {gains[0]} then, {gains[1]} now"
    )


if __name__ == "__main__":
    sys.exit(main())
