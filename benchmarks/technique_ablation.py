"""What each part of the search is worth: runs without it, against the whole.

    python -m benchmarks.technique_ablation FOLDER/apps/harris/harris_generator.cpp:harris ... --budget 3m --seeds 1

Each generator is tuned from scratch, its own schedule unseen, as `benchmarks.against_humans` does: with all techniques,
and without Halide's own samples, without sketches, without evolution, and without a model, which then proposes its
schedules in the order in which they were made. The winners are timed in turns. Printed for each generator, and in
geometric mean: the whole run's time over that without a part; below 1 the part is worth its time. What is nearer to 1
than two seeds are to each other says nothing. The sources are yours to give.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.against_humans import (
    Row,
    generator_name,
    geometric_mean,
    has_results,
    median,
    parser_of_runs,
    tuned_row,
)
from benchmarks.record_pool import python_path
from tests.installed_package import write_package

_ALL = "all"
_MODEL = "indifferent"
_KINDS: Mapping[str, Sequence[str]] = {
    _ALL: (),
    "without sampling": ("--technique", "sketches,evolution"),
    "without sketches": ("--technique", "sampling,evolution"),
    "without evolution": ("--technique", "sampling,sketches"),
    "without a model": ("--model", _MODEL),
}


class Indifferent:
    """A model to which all schedules are alike."""

    def fit(self, timed: Sequence[object], times_ms: Sequence[float]) -> None:
        """See `sdk.ScheduleCostModel`."""

    def predict(self, schedules: Sequence[object]) -> tuple[list[float], list[float]]:
        """See `sdk.ScheduleCostModel`."""
        return [0.0] * len(schedules), [1.0] * len(schedules)


def main() -> int:
    """Print a row for each generator, as it is done, and the means; exit code 1 if runs without a part are faster in
    the mean, or one has no result."""
    arguments = parser_of_runs(__doc__, budget="3m", seeds=1, turns=9).parse_args()
    rows: list[Row] = []
    print(" | ".join(["generator", "own ms", "all", *[kind for kind in _KINDS if kind != _ALL]]), flush=True)
    with tempfile.TemporaryDirectory(prefix="technique-ablation-") as folder:
        entry_point = {_MODEL: "benchmarks.technique_ablation:Indifferent"}
        write_package(Path(folder), "technique-ablation", {"halide_autotune.models": entry_point})
        os.environ["PYTHONPATH"] = python_path(folder)
        for generator in arguments.generators:
            shared = [generator, "--target", arguments.target, *arguments.options.split()]
            runs = Path(folder) / generator_name(generator)
            rows.append(tuned_row(shared, _KINDS, arguments.budget, arguments.seeds, arguments.turns, runs))
            print(_text(rows[-1]), flush=True)
            if arguments.output is not None:
                arguments.output.write_text(json.dumps([asdict(each) for each in rows], indent=1))
    means = [geometric_mean([_share(row, kind) for row in rows]) for kind in _KINDS if kind != _ALL]
    print(" | ".join(["geometric mean", "", "", *(f"{mean:.2f}" for mean in means)]))
    return 0 if has_results(rows, _KINDS) and max(means) <= 1 else 1


def _text(row: Row) -> str:
    shares = [f"{_share(row, kind):.2f}" for kind in _KINDS if kind != _ALL]
    return " | ".join([generator_name(row.generator), f"{row.own_ms:.3g}", f"{median(row.ratios[_ALL]):.2f}", *shares])


def _share(row: Row, kind: str) -> float:
    """The whole run's time over that of a kind of run."""
    return median(row.ratios[kind]) / median(row.ratios[_ALL])


if __name__ == "__main__":
    sys.exit(main())
