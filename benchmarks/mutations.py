"""Whether the tests notice when the project's own code is wrong.

The list (benchmarks/mutations.toml) has the mutations: an area, a file, what is replaced by what, and the tests that
should fail then. They run in a temporary copy of the checkout, with and without the mutation. What is known stays in
the output file and is not run again as long as neither the mutation nor its file nor its tests change, so a run that
was interrupted goes on from there. Exit code 1 if fewer than 85 % are caught.

python -m benchmarks.mutations [--only AREA ...] [--output FILE.json] [--again]
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from halide_autotune.sdk.service.interrupts import end_in_order

PROJECT = Path(__file__).parents[1]
LIST = Path(__file__).with_suffix(".toml")
LEAST_SHARE = 0.85
_LIMIT_S = 900.0
# A test that a mutation keeps from coming to an end.
_TEST_LIMIT_S = 120.0
_FAILED, _PASSED = 1, 0


@dataclass(frozen=True)
class Mutation:
    """One way to break the code.

    Attributes:
        area: the part of the project.
        name: what is wrong then; unique.
        file: which has `old` exactly once.
        tests: the nearest ones, as pytest takes them.
        reason: why nothing notices, where that is known and accepted.
    """

    area: str
    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    reason: str = ""

    def applied_to(self, text: str) -> str:
        """The file's text with the mutation."""
        found = text.count(self.old)
        if found != 1:
            raise ValueError(f"{self.file} has the text to replace {found} times, not once ({self.name}).")
        return text.replace(self.old, self.new)

    def key(self, root: Path) -> str:
        """Changes with whatever its outcome depends on, as far as that is near."""
        files = [self.file, *(test.partition("::")[0] for test in self.tests)]
        parts = [json.dumps(asdict(self)), *((root / file).read_text() for file in files)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Outcome:
    """What the tests said.

    Attributes:
        result: 'caught', 'survived', or 'broken': the tests fail without the mutation, too, or do not run.
        told: the last lines of the tests' output.
    """

    area: str
    name: str
    key: str
    result: str
    reason: str
    told: str


def main() -> int:
    """Print what was caught; 1 if it is too little."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="AREA", help="only mutations of this area; may be repeated")
    parser.add_argument("--output", type=Path, default=PROJECT / "build" / "mutations.json", metavar="FILE.json")
    parser.add_argument("--again", action="store_true", help="run also what the output file knows")
    arguments = parser.parse_args()
    wanted = [mutation for mutation in read_list() if not arguments.only or mutation.area in arguments.only]
    if not wanted:
        parser.error(f"the areas are {', '.join(sorted({mutation.area for mutation in read_list()}))}")
    known = {} if arguments.again else _known(arguments.output)
    outcomes: list[Outcome] = []
    with end_in_order(), tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        bench = Bench(Path(folder))
        for number, mutation in enumerate(wanted, 1):
            key = mutation.key(bench.checkout)
            outcome = known.get(mutation.name)
            if outcome is None or outcome.key != key:
                outcome = bench.try_out(mutation, key)
            outcomes.append(outcome)
            known[mutation.name] = outcome
            _write(arguments.output, known.values())
            print(f"{number:3} of {len(wanted)}  {outcome.result:8}  {mutation.area}: {mutation.name}", flush=True)
    return report(outcomes)


def read_list() -> list[Mutation]:
    """Every mutation of the list."""
    with LIST.open("rb") as file:
        tables = tomllib.load(file)["mutation"]
    return [Mutation(**{**table, "tests": tuple(table["tests"])}) for table in tables]


class Bench:
    """A copy of the checkout in which tests run, and a folder for what they compile, which all of them share.

    Attributes:
        checkout: the copy, as the checkout was when this was made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.checkout = folder / "checkout"
        self._sound: dict[tuple[str, ...], bool] = {}
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=PROJECT,
            check=True,
            stdout=subprocess.PIPE,
        )
        for name in filter(None, os.fsdecode(listed.stdout).split("\0")):
            if (PROJECT / name).is_file() or (PROJECT / name).is_symlink():  # the package has links to its folders
                (self.checkout / name).parent.mkdir(parents=True, exist_ok=True)
                with contextlib.suppress(FileNotFoundError):  # what is not committed may go meanwhile
                    shutil.copy2(PROJECT / name, self.checkout / name, follow_symlinks=False)

    def try_out(self, mutation: Mutation, key: str) -> Outcome:
        """Run the tests without the mutation, unless they did, and with it."""
        result, told = "broken", ""
        if mutation.tests not in self._sound:
            code, told = self._run(mutation.tests)
            self._sound[mutation.tests] = code == _PASSED
        if self._sound[mutation.tests]:
            file = self.checkout / mutation.file
            text = file.read_text()
            file.write_text(mutation.applied_to(text))
            try:
                code, told = self._run(mutation.tests)
            finally:
                file.write_text(text)
            result = {_FAILED: "caught", _PASSED: "survived"}.get(code, "broken")
        return Outcome(mutation.area, mutation.name, key, result, mutation.reason, told)

    def _run(self, tests: Sequence[str]) -> tuple[int, str]:
        """Exit code and the end of the output; tests that do not come to an end have failed."""
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "--timeout",
            str(_TEST_LIMIT_S),
        ]
        command += ["--compiled", str(self._folder / "compiled"), "--basetemp", str(self._folder / "temporary"), *tests]
        # An installed package of the same name must not take the copy's place; nor may compiled Python be out of date.
        environment = {**os.environ, "PYTHONPATH": str(self.checkout / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(
                command,
                cwd=self.checkout,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_LIMIT_S,
            )
        except subprocess.TimeoutExpired:
            return _FAILED, "The tests did not come to an end."
        return done.returncode, "\n".join(done.stdout.decode(errors="replace").splitlines()[-8:])


def _known(file: Path) -> dict[str, Outcome]:
    """By the mutations' names."""
    if not file.is_file():
        return {}
    outcomes = [Outcome(**fields) for fields in json.loads(file.read_text())["mutations"]]
    return {outcome.name: outcome for outcome in outcomes if outcome.result != "broken"}


def _write(file: Path, outcomes: Iterable[Outcome]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(".part")
    beside.write_text(json.dumps({"mutations": [asdict(one) for one in outcomes]}, indent=2) + "\n")
    beside.replace(file)


def report(outcomes: Sequence[Outcome]) -> int:
    """Print a row for each area, what was not caught, and the share that was; 1 if that is too little."""
    print("\n| area | caught | survived | broken |\n|---|---|---|---|")
    for area in sorted({outcome.area for outcome in outcomes}):
        counts = [_count(outcomes, result, area) for result in ("caught", "survived", "broken")]
        print(f"| {area} | " + " | ".join(map(str, counts)) + " |")
    for outcome in outcomes:
        if outcome.result != "caught":
            told = outcome.reason or ("" if outcome.result == "survived" else outcome.told)
            print(f"\n{outcome.result}: {outcome.area}: {outcome.name}" + (f"\n  {told}" if told else ""))
    share = _count(outcomes, "caught") / len(outcomes)
    print(f"\n{_count(outcomes, 'caught')} of {len(outcomes)} caught: {share:.0%}")
    return 0 if share >= LEAST_SHARE else 1


def _count(outcomes: Sequence[Outcome], result: str, area: str | None = None) -> int:
    return sum(outcome.result == result and area in (None, outcome.area) for outcome in outcomes)


if __name__ == "__main__":
    sys.exit(main())
