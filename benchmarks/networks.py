"""Whole networks, tuned, against TensorFlow and LiteRT on the same cores.

    python -m benchmarks.networks MODEL… [--budget-s 600] [--target x86-64] [--runs FOLDER]

MODEL is resnet18, mobilenet, mobilenetv2, dqn, lstm_lm (with random weights), or a .keras or .tflite file. Each is
tuned (`sdk network tune`), and then built, checked layer by layer and timed (`sdk network bench`). Printed: the median
time of a call and the least and the most of its turns, for each contender; how many times as fast the tuned network is;
and what is computed wrongly. The goal is TensorFlow's time; of a .tflite file, which TensorFlow does not compute,
LiteRT's. With `--runs` the runs are kept, and those that are there are used instead of tuning again.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import sdk
from benchmarks.network_models import APPLICATIONS, BUILT
from halide_autotune.autotune_loop.network.models import with_random_weights

CONTENDERS = ("default", "tuned", "TensorFlow", "LiteRT")
TUNED, OTHERS = CONTENDERS[1], CONTENDERS[2:]


def main(words: Sequence[str] | None = None) -> int:
    """Print a row for each network; exit code 1 if a goal is missed or a layer is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL", help=f"{', '.join([*BUILT, *APPLICATIONS])}, or a file")
    parser.add_argument("--budget-s", type=float, default=600.0, help="of each network's tuning")
    parser.add_argument("--target", default="x86-64")
    parser.add_argument("--runs", type=Path, help="the folder with a run for each network")
    arguments = parser.parse_args(words)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    options = sdk.RunOptions.of(target=arguments.target, budget_s=arguments.budget_s, no_history=True)
    reached = True
    print(heading(), flush=True)
    with tempfile.TemporaryDirectory(prefix="networks-") as folder:
        for model in arguments.models:
            found = _benched(model, options, arguments.runs or Path(folder) / "runs", Path(folder))
            print(row(Path(model).stem, found), flush=True)
            reached &= reaches_goal(found)
    return 0 if reached else 1


def heading() -> str:
    """The first lines of the table."""
    titles = ("ms", *CONTENDERS, *(f"{name} / {TUNED}" for name in OTHERS), "wrong layers")
    return f"{_line(titles)}\n{_line(['---'] * len(titles))}"


def row(name: str, found: sdk.BenchedNetwork) -> str:
    """A network's times in milliseconds, the others' over the tuned one, and what is wrong."""
    times = [_time_text(found, each) for each in CONTENDERS]
    ratios = [f"{ratio(found, each):.2f}" for each in OTHERS]
    wrong = dict.fromkeys(check.name for _, check in found.wrong)
    return _line([name, *times, *ratios, ", ".join(wrong) or "none"])


def reaches_goal(found: sdk.BenchedNetwork) -> bool:
    """Whether a network is right, and at least as fast as its peer; one that could not be timed misses the goal."""
    # LiteRT counts where TensorFlow is no contender, not where it has failed.
    peer = next((name for name in OTHERS if name in found.times_ms or name in found.not_timed), OTHERS[0])
    return not found.wrong and ratio(found, peer) >= 1.0


def _benched(model: str, options: sdk.RunOptions, runs: Path, folder: Path) -> sdk.BenchedNetwork:
    read, run = _model(model, folder), runs / Path(model).stem
    if not run.exists():
        print(f"tuning {model}", file=sys.stderr, flush=True)
        sdk.tune_network(read, options=options, run_folder=run)
    print(f"timing {model}", file=sys.stderr, flush=True)
    return sdk.bench_network(read, run=run)


def _model(model: str, folder: Path) -> str:
    """What the SDK takes for a network."""
    if model not in BUILT:
        return APPLICATIONS.get(model, model)
    path = folder / f"{model}.keras"
    with_random_weights(BUILT[model]()).save(path)
    return str(path)


def ratio(found: sdk.BenchedNetwork, name: str) -> float:
    """Another one's time over the tuned one."""
    return found.times_ms.get(name, math.nan) / found.times_ms.get(TUNED, math.nan)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _time_text(found: sdk.BenchedNetwork, name: str) -> str:
    if name not in found.times_ms:
        return "–"
    low_ms, high_ms = found.ranges_ms[name]
    return f"{found.times_ms[name]:.3f} [{low_ms:.3f}, {high_ms:.3f}]"


if __name__ == "__main__":
    sys.exit(main())
