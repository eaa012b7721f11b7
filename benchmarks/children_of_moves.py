"""What each move makes of good schedules: the times of its children over those of their parents.

    python -m benchmarks.children_of_moves [--children 10] [--moves split,tile] [PIPELINE ...]

Children of the first three sketches of each example, by one move each, are timed once beside their parents on this
machine. Printed for each move: how many were timed and how many failed, quartiles and the geometric mean of the ratio,
and the share of those that are 2 % faster. A search chooses among many such children: what counts is that the best are
better and that few are hopeless. For another version run it in a checkout of that.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import sdk
from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.to_schedule import schedule_of
from halide_autotune.autotune_loop.moves.mutation import MOVES, Mutation
from halide_autotune.autotune_loop.schedule.print_header import print_header
from halide_autotune.autotune_loop.sketches.sketches import sketches
from halide_autotune.sdk.select.device_choice import parallelism_here
from halide_autotune.sdk.settings import read_settings
from halide_autotune.targets.profile.loader import load_profile
from tests.drafted_pipelines import recorded

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
_PIPELINES = ("stencil_chain", "corner_detector", "bilateral_grid")
_USUAL = "compute level,sliding window,split,tile,inline,parallel,unroll"
_PARENTS, _TRIES_PER_CHILD, _FASTER = 3, 6, 0.98


def main() -> int:
    """Print a row for each move; exit code 1 if no child was timed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipelines", nargs="*", default=_PIPELINES, metavar="PIPELINE")
    parser.add_argument("--moves", default=_USUAL)
    parser.add_argument("--children", type=int, default=10, help="by each move of each pipeline")
    arguments = parser.parse_args()
    profile = load_profile("x86-64", read_settings().profile_folder)
    threads = parallelism_here(profile.device_kind, profile)
    moves = arguments.moves.split(",")
    ratios: dict[str, list[float]] = {move: [] for move in moves}
    failed = dict.fromkeys(moves, 0)
    for name in arguments.pipelines:
        for move, ratio in _timed(name, moves, arguments.children, threads):
            if math.isnan(ratio):
                failed[move] += 1
            else:
                ratios[move].append(ratio)
    print(f"{'move':20}{'timed':>7}{'failed':>8}{'a quarter':>11}{'half':>7}{'3 quarters':>12}{'mean':>7}{'faster':>8}")
    for move, found in ratios.items():
        if len(found) > 1:
            first, middle, last = statistics.quantiles(found, n=4)
            mean = math.exp(statistics.fmean(map(math.log, found)))
            faster = sum(ratio < _FASTER for ratio in found) / len(found)
            row = f"{len(found):7}{failed[move]:8}{first:11.2f}{middle:7.2f}{last:12.2f}{mean:7.2f}{faster:8.0%}"
            print(f"{move:20}{row}")
    return 0 if any(ratios.values()) else 1


def _timed(name: str, moves: list[str], count: int, threads: int) -> Iterator[tuple[str, float]]:
    """Each move's children's times over their parents'; not a number where one has failed."""
    names = recorded(name)
    parents = [one.draft for one in sketches(names, threads)][:_PARENTS]
    with tempfile.TemporaryDirectory(prefix="children-") as folder:
        paths: dict[str, Path] = {}

        def header(draft: Draft) -> Path:
            text = print_header(schedule_of(draft, names, name), name)
            return paths.setdefault(text, Path(folder) / f"{len(paths)}.schedule.h")

        places = [header(parent) for parent in parents]
        made = [
            (move, place, header(child))
            for move in moves
            for place, child in _children(names, move, list(zip(places, parents, strict=True)), count)
        ]
        for text, path in paths.items():
            path.write_text(text)
        options = sdk.RunOptions.of(target="x86-64", parallelism=threads)
        results = sdk.bench(str(EXAMPLES / f"{name}.cpp"), [*map(str, paths.values())], options=options, turns=1)
        times_ms = {result.label: result.median_ms or math.nan for result in results}
        yield from ((move, times_ms[str(child)] / times_ms[str(parent)]) for move, parent, child in made)


def _children(
    names: PipelineNames, move: str, parents: list[tuple[Path, Draft]], count: int
) -> Iterator[tuple[Path, Draft]]:
    """Up to so many different children by one move, each with its parent's place."""
    mutation, weights = Mutation(names), {each.name: float(each.name == move) for each in MOVES}
    found: list[Draft] = []
    for seed in range(_TRIES_PER_CHILD * count):
        place, parent = parents[seed % len(parents)]
        child = mutation.child(parent, Random(seed), weights, 1)
        if child is not None and child.draft not in found and len(found) < count:
            found.append(child.draft)
            yield place, child.draft


if __name__ == "__main__":
    sys.exit(main())
