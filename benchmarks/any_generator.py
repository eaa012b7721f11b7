"""Whether generators that nobody here wrote can be tuned as they are, each with a command line of options.

The list (benchmarks/any_generator.toml) names repositories, their generators and the options that those need; the
sources are yours to fetch. Each generator is tuned for one small round with a play-off of eight turns, on this machine,
and the table says what it was compared with and how that ended: whether it can be tuned, not how well. With --results
what came of each is kept, so that the list can be gone through in parts; --page writes the table of all that is kept.

python -m benchmarks.any_generator halide/Halide=FOLDER djcscin/Halide=FOLDER ... [--only WORD] [--results FILE.json]
    [--page docs/other-generators.md]
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

LIST = Path(__file__).with_suffix(".toml")
_LIMIT_S = 240.0
# As many whole sentences of a message as fit: it ends with the log of what failed.
_MESSAGE_CHARACTERS = 250
_SMALL = (
    *("--num-batches", "1", "--batch-size", "2", "--pool-factor", "1", "--play-off-turns", "8", "--epochs", "5"),
    *("--full-search-limit", "10s", "--search-limit", "60s", "--device-patience", "1s", "--json", "--quiet"),
)
_TABLES = re.compile(r"(?<=<!-- tables -->\n).*(?=<!-- end of tables -->)", re.DOTALL)
_HEAD = "| generator | what came of it | winner |\n|---|---|---|"


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
    """What became of one.

    Attributes:
        message: why it was not tuned.
        late: it was not done in the time that each has, which says nothing of whether it can be tuned.
        than: what the winner was compared with: 'own', 'default'.
    """

    repository: str
    generator: str
    message: str = ""
    late: bool = False
    than: str = ""
    times: float | None = None
    tuned_ms: float | None = None

    @property
    def kind(self) -> str:
        """Tuned, late or stopped."""
        if self.tuned_ms is not None:
            return "tuned"
        return "late" if self.late else "stopped"

    @property
    def row(self) -> str:
        """Its row of the table."""
        result = "tuned" if self.tuned_ms is not None else _sentences(self.message).replace("|", "\\|")
        gain = "" if self.times is None else f"{self.times:.2f} × as fast as {self.than}"
        return f"| `{self.generator}` | {result} | {gain} |"


def main() -> int:
    """Print a row for each generator, and how many were tuned."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", metavar="OWNER/NAME=FOLDER")
    parser.add_argument("--only", default="", help="only generators with this in their row")
    parser.add_argument("--target", default="host")
    parser.add_argument("--limit-s", type=float, default=_LIMIT_S, help="for each")
    parser.add_argument("--results", type=Path, help="keep what came of each there, and try none that was tuned again")
    parser.add_argument("--page", type=Path, help="write the tables of all results into this page")
    arguments = parser.parse_args()
    folders = {name: Path(folder).resolve() for name, _, folder in (item.partition("=") for item in arguments.folders)}
    outcomes = _kept(arguments.results)
    for listed in _listed():
        key = f"{listed.repository} {listed.generator}"
        is_tuned = key in outcomes and outcomes[key].kind == "tuned"
        if listed.repository not in folders or arguments.only not in key or is_tuned:
            continue
        outcomes[key] = _tune(listed, folders[listed.repository], arguments.target, arguments.limit_s)
        print(outcomes[key].row, flush=True)
        if arguments.results is not None:
            text = json.dumps({each: asdict(outcome) for each, outcome in outcomes.items()}, indent=1)
            arguments.results.write_text(text)
    shown = [outcomes[key] for listed in _listed() if (key := f"{listed.repository} {listed.generator}") in outcomes]
    print(summary(shown))
    if arguments.page is not None:
        arguments.page.write_text(_TABLES.sub(lambda _: tables(shown), arguments.page.read_text()))
    return 0


def summary(outcomes: Sequence[Outcome]) -> str:
    """How many were tuned, and how many of them are not Halide's own."""
    kinds = Counter(outcome.kind for outcome in outcomes)
    others = sum(1 for outcome in outcomes if outcome.repository != "halide/Halide")
    late = f", {kinds['late']} would have needed longer" if kinds["late"] else ""
    return (
        f"{kinds['tuned']} of {len(outcomes)} are tuned{late}; {others} are from other repositories than halide/Halide."
    )


def tables(outcomes: Sequence[Outcome]) -> str:
    """A table of each repository, under the summary."""
    lines = ["", summary(outcomes)]
    for repository in dict.fromkeys(outcome.repository for outcome in outcomes):
        rows = [outcome.row for outcome in outcomes if outcome.repository == repository]
        lines += ["", f"### {repository}", "", _HEAD, *rows]
    return "\n".join([*lines, "", ""])


def _kept(results: Path | None) -> dict[str, Outcome]:
    if results is None or not results.is_file():
        return {}
    return {key: Outcome(**fields) for key, fields in json.loads(results.read_text()).items()}


def _listed() -> Iterator[Listed]:
    for repository in tomllib.loads(LIST.read_text())["repository"]:
        for generator, options in repository["generators"].items():
            yield Listed(repository["name"], generator, (*repository.get("options", []), *options))


def _tune(listed: Listed, folder: Path, target: str, limit_s: float) -> Outcome:
    options = [option.replace("{folder}", str(folder)) for option in listed.options]
    command = [
        sys.executable,
        "-m",
        "halide_autotune.sdk.main",
        "autotune",
        "--no-history",
        str(folder / listed.generator),
        "--target",
        target,
    ]
    with tempfile.TemporaryDirectory(prefix="any-generator-") as text:
        run = ["--run-dir", str(Path(text) / "run")]
        try:
            done = subprocess.run(
                [*command, *options, *_SMALL, *run], capture_output=True, text=True, timeout=limit_s, check=False
            )
        except subprocess.TimeoutExpired:
            return Outcome(listed.repository, listed.generator, f"not done within {limit_s:.0f} s", late=True)
    return Outcome(listed.repository, listed.generator, **_result(done.stdout.splitlines(), done.stderr))


def _sentences(message: str) -> str:
    kept, *others = message.split(". ")
    for sentence in others:
        if len(kept) + len(sentence) > _MESSAGE_CHARACTERS:
            break
        kept += f". {sentence}"
    return kept


def _result(printed: Sequence[str], errors: str) -> Mapping[str, Any]:
    for line in reversed(printed):
        event = json.loads(line)
        if event.get("event", "result") == "result" and event.get("tuned"):
            (one,) = event["tuned"]
            if one.get("tuned_ms") is not None:
                return {
                    "than": one.get("speed_up_than") or "",
                    "times": one.get("speed_up"),
                    "tuned_ms": one["tuned_ms"],
                }
            return {"message": one.get("message") or "nothing was timed"}
    message = " ".join(errors.partition("sdk: ")[2].split()) or " ".join(errors.split())[-200:]
    return {"message": message}


if __name__ == "__main__":
    sys.exit(main())
