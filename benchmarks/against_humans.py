"""How close tuned schedules come to those that people wrote, as in Halide's apps: any generators with schedules.

    python -m benchmarks.against_humans FOLDER/apps/harris/harris_generator.cpp:harris ... --budget 10m --seeds 3 \
        --runs "all=" "sampling=--technique sampling" "from own=+own" "earlier=+sdk=/earlier/.venv/bin/sdk"

Each generator is tuned from scratch, its own schedule unseen (or started from it, with `+own` among a run's options; or
by another version of the SDK, with `+sdk=FILE`, which is given only what every version takes), once for each seed and
each kind of run, all with one budget. Then the winners, the generator's own schedule and those of Adams2019 and
Mullapudi2016 are timed in turns. Printed for each generator: the own schedule's time over the winner's, the median of
the seeds (1 is as fast as the person's), with the range over the seeds, and schedules timed a minute; at the end the
geometric mean of each column. The sources are yours to give.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

_OWN, _SCRATCH = "+own", "--ignore-own-schedule"
_OTHER_SDK = "+sdk="
_THIS_SDK = (sys.executable, "-m", "halide_autotune.sdk.main")
_PEERS = ("adams2019", "mullapudi2016")


@dataclass(frozen=True)
class Winner:
    """What a run has found.

    Attributes:
        header: empty if nothing was found, or the own schedule stayed.
        timed: schedules, and a minute.
    """

    kind: str
    seed: int
    header: str
    timed: int
    timed_a_minute: float


@dataclass
class Row:
    """One generator.

    Attributes:
        ratios: kind of run, or a peer → the own schedule's time over each seed's winner's.
    """

    generator: str
    own_ms: float = math.nan
    winners: list[Winner] = field(default_factory=list)
    ratios: dict[str, list[float]] = field(default_factory=dict)


def main() -> int:
    """Print a row for each generator, as it is done, and the means; exit code 1 if the first kind of run is slower than
    the authors in the mean, or a run has no result."""
    parser = parser_of_runs(__doc__, budget="10m", seeds=3, turns=15)
    parser.add_argument("--runs", nargs="+", default=["all="], metavar="NAME=OPTIONS")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the runs' folders stay; they go otherwise")
    arguments = parser.parse_args()
    kinds = {name: options.split() for name, _, options in (each.partition("=") for each in arguments.runs)}
    for name, options in kinds.items():
        for sdk in _other_sdks(options):
            if shutil.which(sdk) is None:
                parser.error(
                    f"--runs {name}: {sdk} is no program. Name the `sdk` command of another version after {_OTHER_SDK}."
                )
    rows: list[Row] = []
    print(" | ".join(["generator", "own ms", *kinds, *_PEERS, "timed a minute"]), flush=True)
    for generator in arguments.generators:
        shared = [generator, "--target", arguments.target, *arguments.options.split()]
        with tempfile.TemporaryDirectory(prefix="against-humans-") as passing:
            folder = arguments.keep / generator_name(generator) if arguments.keep else Path(passing)
            row = tuned_row(shared, kinds, arguments.budget, arguments.seeds, arguments.turns, folder)
        rows.append(row)
        print(_text(row, kinds), flush=True)
        if arguments.output is not None:
            arguments.output.write_text(json.dumps([asdict(each) for each in rows], indent=1))
    means = [geometric_mean([median(row.ratios.get(name, [])) for row in rows]) for name in (*kinds, *_PEERS)]
    print(" | ".join(["geometric mean", "", *(f"{mean:.2f}" for mean in means)]))
    return 0 if has_results(rows, kinds) and means[0] >= 1 else 1


def parser_of_runs(about: str | None, *, budget: str, seeds: int, turns: int) -> argparse.ArgumentParser:
    """The options of all that tunes generators and times the winners, with these defaults."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("generators", nargs="+")
    parser.add_argument("--target", default="x86-64")
    parser.add_argument("--budget", default=budget)
    parser.add_argument("--seeds", type=int, default=seeds)
    parser.add_argument("--turns", type=int, default=turns)
    parser.add_argument("--options", default="", help="of `sdk autotune` and `sdk bench`, such as --include FOLDER")
    parser.add_argument("--output", type=Path, help="also write everything there, as JSON")
    return parser


def tuned_row(
    shared: Sequence[str], kinds: Mapping[str, Sequence[str]], budget: str, seeds: int, turns: int, folder: Path
) -> Row:
    """Tune one generator in every kind of run, and time the winners beside its own schedule and its peers'.

    Args:
        shared: what the generator is and its target, as `sdk autotune` and `sdk bench` are given them.
        kinds: kind of run → its options.
        seeds: runs of each kind.
        turns: in which all are timed.
        folder: the runs' folders are made in it.
    """
    row = Row(shared[0])
    for seed in range(seeds):
        for kind, options in kinds.items():
            row.winners.append(_tune(shared, kind, options, budget, seed, folder / f"{kind}-{seed}".replace(" ", "-")))
    headers = [winner.header for winner in row.winners if winner.header]
    choices = [word for schedule in ("own", *headers, *_PEERS) for word in ("--schedule", schedule)]
    told = _json(_THIS_SDK, ["bench", *shared, *choices, "--turns", str(turns)])
    times_ms = {each["schedule"]: each["median_ms"] for each in told or [] if each["failure"] is None}
    row.own_ms = times_ms.get("own", math.nan)
    for winner in row.winners:
        # Where no winner was published, the own schedule has stayed.
        time_ms = times_ms.get(winner.header, row.own_ms if _OWN in kinds[winner.kind] else math.nan)
        row.ratios.setdefault(winner.kind, []).append(row.own_ms / time_ms)
    for peer in _PEERS:
        row.ratios[peer] = [row.own_ms / times_ms[peer]] if peer in times_ms else []
    return row


def _tune(shared: Sequence[str], kind: str, options: Sequence[str], budget: str, seed: int, folder: Path) -> Winner:
    more = [option for option in options if not option.startswith((_OWN, _OTHER_SDK))]
    run = [*more, "--budget", budget, "--seed", str(seed), "--run-dir", str(folder), "--quiet"]
    sdk = _other_sdks(options)
    if not sdk:
        sdk = [*_THIS_SDK]
        run += ["--no-history", "--device-patience", "1s", *([] if _OWN in options else [_SCRATCH])]
    told = _json(sdk, ["autotune", *shared, *run]) or {}
    (tuned,) = told.get("tuned") or [{}]
    timed, duration_s = told.get("samples_timed", 0), told.get("duration_s") or math.nan
    return Winner(kind, seed, tuned.get("header") or "", timed, timed / duration_s * 60)


def _other_sdks(options: Sequence[str]) -> list[str]:
    return [option.removeprefix(_OTHER_SDK) for option in options if option.startswith(_OTHER_SDK)]


def _json(sdk: Sequence[str], arguments: Sequence[str]) -> Any:
    """What a command of the SDK prints; None if it failed."""
    done = subprocess.run([*sdk, *arguments, "--json"], capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout)
    except ValueError:
        print(f"{' '.join(arguments[:2])}: {done.stderr.strip()[-400:]}", file=sys.stderr)
        return None


def has_results(rows: Sequence[Row], kinds: Iterable[str]) -> bool:
    """Whether every kind of run has a winner with a time, of every generator."""
    return all(math.isfinite(median(row.ratios[kind])) for row in rows for kind in kinds)


def _text(row: Row, kinds: Mapping[str, Sequence[str]]) -> str:
    cells = [generator_name(row.generator), f"{row.own_ms:.3g}"]
    for name in (*kinds, *_PEERS):
        ratios = [each for each in row.ratios.get(name, []) if math.isfinite(each)]
        several = f" ({min(ratios):.2f} to {max(ratios):.2f})" if len(ratios) > 1 else ""
        cells.append(f"{median(ratios):.2f}{several}")
    a_minute = {name: [w.timed_a_minute for w in row.winners if w.kind == name] for name in kinds}
    cells.append(", ".join(f"{median(each):.0f}" for each in a_minute.values()))
    return " | ".join(cells)


def generator_name(generator: str) -> str:
    """What a generator is called in a table."""
    return Path(generator.partition(":")[0]).stem.removesuffix("_generator")


def median(values: Sequence[float]) -> float:
    """The median of those that are finite."""
    finite = [each for each in values if math.isfinite(each)]
    return statistics.median(finite) if finite else math.nan


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean of those that are finite."""
    finite = [each for each in values if math.isfinite(each)]
    return math.exp(statistics.fmean(map(math.log, finite))) if finite else math.nan


if __name__ == "__main__":
    sys.exit(main())
