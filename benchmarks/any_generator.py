"""Whether generators that nobody here wrote can be tuned as they are, each with a command line of options.

The list (benchmarks/any_generator.toml) names repositories, their generators and the options that those need; the
sources are yours to fetch. Each generator is tuned for one small round with a play-off of eight turns, on this machine,
and the table says what it was compared with and how that ended: whether it can be tuned, not how well.

python -m benchmarks.any_generator halide/Halide=FOLDER djcscin/Halide=FOLDER ... [--only WORD] [--output FILE.md]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).with_suffix(".toml")
_LIMIT_S = 240.0
_SMALL = (
    *("--num-batches", "1", "--batch-size", "2", "--pool-factor", "1", "--play-off-turns", "8", "--epochs", "5"),
    *("--full-search-limit", "10s", "--search-limit", "60s", "--device-patience", "1s", "--json", "--quiet"),
)


@dataclass(frozen=True)
class Listed:
    """One generator of the list.

    Attributes:
        options: of `sdk autotune`, with '{folder}' for the repository's.
    """

    repository: str
    generator: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """What became of it.

    Attributes:
        message: why it was not tuned.
        than: what the winner was compared with: 'own', 'default'.
    """

    listed: Listed
    message: str = ""
    than: str = ""
    times: float | None = None
    tuned_ms: float | None = None

    @property
    def row(self) -> str:
        """Its row of the table."""
        words = " ".join(self.listed.options)
        result = self.message if self.tuned_ms is None else "tuned"
        gain = "" if self.times is None else f"{self.times:.2f} × {self.than}"
        shown = f"`{words}`" if words else ""
        return f"| {self.listed.repository} | `{self.listed.generator}` | {shown} | {result} | {gain} |"


def main() -> int:
    """Print a row for each generator, and how many were tuned."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="OWNER/NAME=FOLDER")
    parser.add_argument("--only", default="", help="only generators with this in their row")
    parser.add_argument("--target", default="host")
    parser.add_argument("--output", type=Path, help="also write the table there")
    arguments = parser.parse_args()
    folders = {name: Path(folder).resolve() for name, _, folder in (item.partition("=") for item in arguments.folders)}
    rows = ["| repository | generator | options | result | winner |", "|---|---|---|---|---|"]
    tuned = tried = 0
    for listed in _listed(folders):
        if arguments.only not in f"{listed.repository} {listed.generator}":
            continue
        outcome = _tune(listed, folders[listed.repository], arguments.target)
        tried += 1
        tuned += outcome.tuned_ms is not None
        rows.append(outcome.row)
        print(outcome.row, flush=True)
        if arguments.output is not None:
            arguments.output.write_text("\n".join(rows) + "\n")
    print(f"{tuned} of {tried} are tuned.")
    return 0


def _listed(folders: Mapping[str, Path]) -> Iterator[Listed]:
    for repository in tomllib.loads(LIST.read_text())["repository"]:
        if repository["name"] in folders:
            for generator, options in repository["generators"].items():
                shared = repository.get("options", [])
                yield Listed(repository["name"], generator, (*shared, *options))


def _tune(listed: Listed, folder: Path, target: str) -> Outcome:
    options = [option.replace("{folder}", str(folder)) for option in listed.options]
    command = [sys.executable, "-m", "sdk.main", "autotune", str(folder / listed.generator), "--target", target]
    with tempfile.TemporaryDirectory(prefix="any-generator-") as text:
        run = ["--run-dir", str(Path(text) / "run")]
        try:
            done = subprocess.run(
                [*command, *options, *_SMALL, *run], capture_output=True, text=True, timeout=_LIMIT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return Outcome(listed, f"not done within {_LIMIT_S:.0f} s")
    return _outcome(listed, done.stdout.splitlines(), done.stderr)


def _outcome(listed: Listed, printed: Sequence[str], errors: str) -> Outcome:
    for line in reversed(printed):
        event = json.loads(line)
        if event.get("event", "result") == "result" and event.get("tuned"):
            (one,) = event["tuned"]
            if one.get("tuned_ms") is not None:
                return Outcome(listed, "", one.get("speed_up_than") or "", one.get("speed_up"), one["tuned_ms"])
            return Outcome(listed, one.get("message") or "nothing was timed")
    message = " ".join(errors.partition("sdk: ")[2].split()) or " ".join(errors.split())[-200:]
    return Outcome(listed, message[:300].replace("|", "\\|"))


if __name__ == "__main__":
    sys.exit(main())
