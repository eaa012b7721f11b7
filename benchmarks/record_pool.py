"""Records a pool for `benchmarks.pool_ablation`: schedules of one pipeline as chance makes them, each timed.

    python -m benchmarks.record_pool GENERATOR RUN_FOLDER [--budget 10m] [--options "--include FOLDER"]

A run that tunes finds the fastest schedules and stays among them, so that any way of choosing from what it has timed
finds one of hundreds within a few per cent. Here nothing is chosen by its time: some are sampled by Halide's search,
most are random children, by one to five moves, of anything that was timed before. The best of such a pool are rare, as
they are among all schedules that there are.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

from halide_autotune.autotune_loop.moves.mutation import MOVES, Mutation
from halide_autotune.autotune_loop.search.models.population import Population, Tried
from halide_autotune.autotune_loop.search.techniques.starts import Starts
from halide_autotune.autotune_loop.search.techniques.technique import Proposal
from tests.installed_package import write_package

CHECKOUT = Path(__file__).resolve().parents[1]
_NAME = "chance"
_MOST_MOVES, _CROSSOVER_SHARE, _TRIES_PER_WANTED = 5, 0.2, 4
# A parent this much slower than the fastest has children that take long and teach little.
_SLOWEST_PARENT = 10.0


class Chance:
    """The technique: random children of random parents."""

    def __init__(self) -> None:
        self._starts = Starts()

    def propose(self, population: Population, count: int, source: Random) -> Iterator[Proposal]:
        """See `Technique.propose`."""
        parents = [one for one in population.tried if one.time_ms <= _SLOWEST_PARENT * population.tried[0].time_ms]
        parents += [Tried("", one.draft, 1.0) for one in self._starts.propose(population, count, source)]
        mutation, weights = Mutation(population.names), {move.name: move.weight for move in MOVES}
        for _ in range(_TRIES_PER_WANTED * count):
            parent, other = source.choice(parents), source.choice(parents)
            if source.random() < _CROSSOVER_SHARE:
                child = mutation.crossed(parent.draft, other.draft, source)
            else:
                child = mutation.child(parent.draft, source, weights, source.randint(1, _MOST_MOVES))
            if child is not None:
                yield Proposal(child.draft, tuple(filter(None, [parent.symbol])), child.moves)


def main() -> int:
    """Record one; the exit code is that of `sdk autotune`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("generator")
    parser.add_argument("run_folder", type=Path)
    parser.add_argument("--budget", default="10m")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--options", default="", help="of `sdk autotune`, such as --include FOLDER")
    arguments = parser.parse_args()
    # Nothing is chosen: neither by a model, nor by what is known of the pipeline or of its authors' schedule.
    chance = ["--technique", f"sampling,{_NAME}", "--model", "gaussian_process", "--random-share", "1"]
    asked = ["--target", "x86-64", "--no-history", "--weights", "baseline", "--ignore-own-schedule", *chance]
    asked += ["--budget", arguments.budget, "--seed", arguments.seed, "--run-dir", str(arguments.run_folder)]
    with tempfile.TemporaryDirectory(prefix="record-pool-") as folder:
        entry_point = {_NAME: "benchmarks.record_pool:Chance"}
        write_package(Path(folder), "record-pool", {"halide_autotune.techniques": entry_point})
        path = python_path(folder)
        command = [sys.executable, "-m", "halide_autotune.sdk.main", "autotune", arguments.generator, *asked]
        command += [*arguments.options.split(), "--quiet"]
        return subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=False).returncode


def python_path(packages: str) -> str:
    """What PYTHONPATH is to be for the SDK to find packages in a folder, and this folder's parts in them."""
    return os.pathsep.join(filter(None, [packages, str(CHECKOUT), os.environ.get("PYTHONPATH")]))


if __name__ == "__main__":
    sys.exit(main())
