"""Every profile that this machine runs or emulates, on integer and float pipelines: built, run, checked, tuned.

    python -m benchmarks.all_profiles                                    # one round each, at tiny sizes
    python -m benchmarks.all_profiles hexagon-v66 --budget-s 300 --large # the three integer pipelines that must gain

A cell holds the tuned schedule's time, how many times as fast as Adams2019's default it is, how many schedules were
timed with their output equal to the reference's, and how many failed. Vectors of floats are refused for HVX. The exit
code is 1 where something else is refused or fails; with --large also where tuning gains nothing.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import sdk

EXAMPLES = Path(__file__).parents[1] / "examples"
PROFILES = ("x86-64", "arm64", "arm64-android", "arm32", "riscv64-rvv", "hexagon-v65", "hexagon-v66", "hexagon-v68")
TINY: Mapping[str, tuple[str, ...]] = {
    "separable_filter": ("width=256", "height=64", "channels=1"),
    "stencil_chain": ("width=256", "height=64", "stages=3"),
    "edge_detector": ("width=256", "height=64"),
    "camera_pipeline": ("width=256", "height=64"),
    "corner_detector": ("width=256", "height=64"),
}
LARGE: Mapping[str, tuple[str, ...]] = {
    "separable_filter": ("width=768", "height=256", "channels=3"),
    "stencil_chain": ("width=768", "height=256", "stages=4"),
    "edge_detector": ("width=1024", "height=256"),
}
_REFUSED_FLOATS = "floating point"


@dataclass(frozen=True)
class Cell:
    """One profile's result with one pipeline; `trouble` is a message where there is none."""

    tuned_ms: float | None = None
    speed_up: float | None = None
    timed: int = 0
    checked: int = 0
    failed: int = 0
    clock: str = ""
    trouble: str = ""

    def text(self) -> str:
        if self.trouble:
            return "refused: floats" if _REFUSED_FLOATS in self.trouble else "failed"
        speed_up = "–" if self.speed_up is None else f"{self.speed_up:.2f}×"
        return f"{self.tuned_ms:.4g} ms {speed_up} {self.checked}/{self.timed} −{self.failed}"

    def is_right(self, must_gain: bool) -> bool:
        if self.trouble:
            return _REFUSED_FLOATS in self.trouble and not must_gain
        gained = self.speed_up is not None and self.speed_up > 1
        return self.timed > 0 and self.checked == self.timed and (gained or not must_gain)


def main() -> int:
    """Print a row for each profile as it is done."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profiles", nargs="*", default=PROFILES)
    parser.add_argument("--budget-s", type=float, help="of each pipeline, in place of one round")
    parser.add_argument("--pipelines", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--large", action="store_true", help="larger sizes, and tuning must gain")
    arguments = parser.parse_args()
    sizes = LARGE if arguments.large else TINY
    names = arguments.pipelines or list(sizes)
    print(f"{'profile':16}{'clock':12}" + "".join(f"{name:32}" for name in names), flush=True)
    right = True
    for profile in arguments.profiles:
        cells = {name: tune(name, sizes[name], profile, arguments.budget_s) for name in names}
        clocks = "/".join(sorted({cell.clock for cell in cells.values()} - {""}))
        print(f"{profile:16}{clocks:12}" + "".join(f"{cell.text():32}" for cell in cells.values()), flush=True)
        for name, cell in cells.items():
            if not cell.is_right(arguments.large):
                right = False
                print(f"{profile}, {name}: {cell.trouble or 'not as it should be'}", file=sys.stderr)
    return 0 if right else 1


def tune(name: str, parameters: tuple[str, ...], profile: str, budget_s: float | None) -> Cell:
    """Tune one example for one profile from Halide's own weights."""
    length = {"rounds": 1} if budget_s is None else {"budget_s": budget_s}
    with tempfile.TemporaryDirectory(prefix="sdk-profiles-") as folder:
        run_folder = Path(folder) / "run"
        options = sdk.RunOptions.of(
            no_history=True,
            **length,
            batch_size=6 if budget_s is None else 12,
            search_limit_s=120.0,  # Halide's code generator for HVX takes its time
            weights="baseline",
        )
        try:
            result = sdk.autotune(
                sdk.GeneratorSpec(str(EXAMPLES / f"{name}.py"), tuple(parameters)),
                target=profile,
                options=options,
                run_folder=run_folder,
            )
        except sdk.SdkError as error:
            return Cell(trouble=str(error))
        if not result.tuned or result.best.tuned_ms is None:
            return Cell(trouble=f"nothing was timed: {dict(result.totals.failures)}")
        with closing(sqlite3.connect(run_folder / "tuning.db")) as database:
            query = "SELECT COUNT(*), SUM(output_checked) FROM measurements WHERE purpose = 'sample'"
            timed, checked = database.execute(query).fetchone()
        best, failed = result.best, sum(result.totals.failures.values())
        return Cell(best.tuned_ms, best.speed_up, int(timed), int(checked or 0), failed, result.clock)


if __name__ == "__main__":
    sys.exit(main())
