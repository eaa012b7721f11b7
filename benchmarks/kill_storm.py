"""A tuner killed with SIGKILL at random moments, and gone on with: nothing lost, nothing left, and as good a winner.

    python -m benchmarks.kill_storm --kills 200

A small example is tuned on this machine. Afterwards the same run is made undisturbed, with as many rounds, and the two
winners are timed in turns.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import sdk
from benchmarks.killed_tuner import Account, Event, Tuner, account_of, heed_interrupts, left_behind
from halide_autotune.sdk.settings import Settings, read_settings

GENERATOR = Path("examples/separable_filter.py").absolute()
PARAMETERS = ("width=320", "height=180")
ASKED = ("--parallelism", "1", "-s", "6", "--pool-factor", "1.2", "--epochs", "20", "--seed", "3", "--device", "local")
# The storm itself disturbs the machine, which is no reason to wait.
PATIENCE = ("--device-patience", "45s", "--quiet-patience", "1s")
# A third of the kills come this long after the start of the process, the others after its first time.
_LATEST_S = 8.0
_START_LIMIT_S = 120.0
_TOLD_EVERY = 10
# What is this near is as fast.
_SLACK = 1.05
_TURNS = 9


class Killer:
    """Kills the tuner a random while after each start, so many times, or as often as there is time for."""

    def __init__(
        self, tuner: Tuner, kills: int, chance: random.Random, enough: threading.Event, limit_s: float = math.inf
    ) -> None:
        self._until_s = time.monotonic() + limit_s
        self._tuner, self._wanted, self._chance, self._enough = tuner, kills, chance, enough
        self.kills = 0
        self._has_timed = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def listen(self, event: Event) -> None:
        """Take the run's events."""
        if event["event"] == "sample_measured":
            self._has_timed.set()

    def join(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        while self.kills < self._wanted and time.monotonic() < self._until_s and not self._enough.is_set():
            started = self._tuner.starts
            if self._chance.random() > 1 / 3:
                self._has_timed.wait(_START_LIMIT_S)
            time.sleep(self._chance.uniform(0.0, _LATEST_S))
            self.kills += self._tuner.kill()
            if self.kills % _TOLD_EVERY == 0:
                print(f"{self.kills} kills", file=sys.stderr)
            self._has_timed.clear()
            while self._tuner.starts == started and not self._enough.wait(0.01):
                pass
        self._enough.set()
        self._tuner.interrupt()


@dataclass(frozen=True)
class KilledRun:
    """What came of a run that was killed and gone on with.

    Attributes:
        result: the last event of the last start, which ended by itself with this exit code.
        left: what was left behind.
    """

    kills: int
    rounds: int
    code: int
    result: Event
    account: Account
    left: list[str]


def tuner_in(folder: Path, rounds: int, settings: Settings) -> Tuner:
    """What tunes the example for so many rounds."""
    parameters = [word for parameter in PARAMETERS for word in ("-p", parameter)]
    environment = {**settings.environment, "SDK_CACHE_DIR": str(settings.cache_folder)}
    return Tuner(folder, [str(GENERATOR), *parameters, *ASKED, *PATIENCE, "-n", str(rounds)], environment)


def killed_run(
    folder: Path, kills: int, chance: random.Random, settings: Settings, limit_s: float = math.inf
) -> KilledRun:
    """Tune through so many kills, and one more round to the end."""
    tuner = tuner_in(folder, 10000, settings)
    enough = threading.Event()
    killer = Killer(tuner, kills, chance, enough, limit_s)
    try:
        tuner.run_until(enough, killer.listen)
    finally:
        enough.set()
        killer.join()
    rounds = tuner.next_round() + 1
    code, result = tuner.run(lambda event: None, ["-n", str(rounds)])
    account = account_of(tuner.run_folder, result)
    return KilledRun(killer.kills, rounds, code, result, account, left_behind(tuner.folder))


def kill_storm(
    folder: Path, kills: int, chance: random.Random, settings: Settings, limit_s: float = math.inf
) -> dict[str, object]:
    """Tune through so many kills, then undisturbed, and compare."""
    killed = killed_run(folder / "killed", kills, chance, settings, limit_s)
    peaceful = tuner_in(folder / "undisturbed", killed.rounds, settings)
    peaceful_code, undisturbed = peaceful.run(lambda event: None)
    ratio, interval = compared(killed.result, undisturbed, settings)
    return {
        "kills": killed.kills,
        "rounds": killed.rounds,
        "account": asdict(killed.account),
        "left behind": killed.left,
        "winner's time over the undisturbed winner's": round(ratio, 3),
        "over the turns": [round(bound, 3) for bound in interval],
        "passed": killed.code == peaceful_code == 0
        and killed.account.is_whole
        and not killed.left
        and killed.kills >= kills
        and (ratio <= _SLACK or interval[0] <= 1.0),
    }


def compared(killed: Event, undisturbed: Event, settings: Settings) -> tuple[float, tuple[float, float]]:
    """The ratio of the winners' times over several turns: its median, and its lowest and highest."""
    timed = sdk.bench(
        sdk.GeneratorSpec(str(GENERATOR), PARAMETERS),
        [winner_of(killed), winner_of(undisturbed)],
        device="local",
        options=sdk.RunOptions.of(parallelism=1),
        turns=_TURNS,
        settings=settings,
    )
    one, other = ([turn.median_s for turn in schedule.turns] for schedule in timed)
    ratios: Sequence[float] = [mine_s / its_s for mine_s, its_s in zip(one, other, strict=True)]
    return statistics.median(ratios), (min(ratios), max(ratios))


def winner_of(result: Event) -> str:
    """The header of a run's winner; the default's name if nothing beat it."""
    return cast("list[dict[str, str | None]]", result["tuned"])[0]["header"] or "adams2019"


def main() -> int:
    """Print what came of it; exit code 1 when something was lost, doubled or left, or the winner is slower."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=math.inf, help="end the kills after this time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    heed_interrupts()
    with tempfile.TemporaryDirectory(prefix="sdk-kills-") as folder:
        chance, limit_s = random.Random(arguments.seed), arguments.minutes * 60
        figures = kill_storm(Path(folder), arguments.kills, chance, read_settings(), limit_s)
    if arguments.json:
        print(json.dumps(figures, indent=2))
    else:
        print(*(f"{key}: {value}" for key, value in figures.items()), sep="\n")
    return 0 if figures["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
