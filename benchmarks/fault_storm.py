"""A run on three devices with 200 faults at random moments: nothing lost, nothing counted twice, no wrong winner.

    python -m benchmarks.fault_storm --faults 200

Two boards with real OpenSSH servers and an emulated Android device, each behind a proxy that drops connections, falls
silent, flips bytes, cuts transfers short and slows down; servers are killed and started again, the phone is rebooted.
The winner is then timed beside the default, undisturbed, on this machine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import sqlite3
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

import sdk
from autotune_loop.events import BatchDone, Event, Notice
from sdk.settings import read_settings
from targets.process.stop_signal import StopSignal
from tests.fault_proxy import Direction
from tests.loopback_lab import LoopbackLab
from tests.remote_board import AdbBoard, RemoteBoard, SshBoard, adb_board, ssh_board

GENERATOR = "examples/separable_filter.py"
PARAMETERS = ("width=320", "height=180")
# A winner that is no slower than this share of the default, undisturbed, is no wrong one.
SLACK = 1.05


class Storm:
    """Injects faults until there were enough of them, then lets the run end."""

    def __init__(self, boards: list[RemoteBoard], faults: int, seed: int, enough: StopSignal) -> None:
        self._boards = boards
        self._wanted = faults
        self._chance = random.Random(seed)
        self._enough = enough
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.faults: Counter[str] = Counter()

    def begin(self) -> None:
        if not self._thread.is_alive() and not self._over.is_set():
            self._thread.start()

    def end(self) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while sum(self.faults.values()) < self._wanted and not self._over.wait(self._chance.uniform(0.1, 1.0)):
            board = self._chance.choice(self._boards)
            kind = self._chance.choice(["drop", "cut", "garbage", "silence", "slow", "refuse", "restart"])
            self._inject(board, kind)
            self.faults[kind] += 1
        # What was chosen last is still timed, now in peace.
        self._enough.set()

    def _inject(self, board: RemoteBoard, kind: str) -> None:
        proxy, pause_s = board.proxy, self._chance.uniform(0.1, 2.0)
        if kind == "drop":
            proxy.drop_all(reset=self._chance.random() < 0.5)
        elif kind == "cut":
            proxy.drop_after(self._chance.choice(list(Direction)), self._chance.randrange(1, 100_000))
        elif kind == "garbage":
            proxy.flip(self._chance.choice(list(Direction)), byte_count=self._chance.randrange(1, 500))
        elif kind == "silence":
            proxy.silence()
            self._over.wait(pause_s)
            proxy.silence(False)
        elif kind == "slow":
            proxy.limit_rate(50_000)
            self._over.wait(pause_s)
            proxy.limit_rate(None)
        elif kind == "refuse":
            proxy.refuse()
            proxy.drop_all()
            self._over.wait(pause_s)
            proxy.refuse(False)
        elif isinstance(board, SshBoard):
            board.server.kill()
            self._over.wait(pause_s)
            board.server.start()
        elif isinstance(board, AdbBoard):
            board.phone.reboot()


def main() -> int:
    """Run the loop through the storm and print what became of every schedule; exit code 1 when one is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sdk-storm-") as text, contextlib.ExitStack() as stack:
        folder = Path(text)
        boards: list[RemoteBoard] = [stack.enter_context(ssh_board(folder / name, name)) for name in ("one", "two")]
        boards.append(stack.enter_context(adb_board(folder / "phone", "phone")))
        figures = run(boards, folder, arguments.faults, arguments.seed)
    if arguments.json:
        print(json.dumps(figures, indent=2))
    else:
        print("\n".join(f"{key}: {value}" for key, value in figures.items()))
    return 0 if figures["passed"] else 1


def run(boards: list[RemoteBoard], folder: Path, faults: int, seed: int) -> dict[str, object]:
    """One run in the storm, and its figures."""
    lab = LoopbackLab(folder, boards, read_settings())
    enough = StopSignal()
    rounds_after = 0
    storm = Storm(boards, faults, seed, enough)
    stop = StopSignal()

    def listen(event: Event) -> None:
        nonlocal rounds_after
        if isinstance(event, Notice) and event.text.startswith("The reference"):
            storm.begin()
        if isinstance(event, BatchDone) and enough.is_set():
            rounds_after += 1
            if rounds_after == 2:
                stop.set()

    try:
        result = sdk.autotune(
            sdk.GeneratorSpec(GENERATOR, tuple(PARAMETERS)),
            target="x86-64",
            device=[board.name for board in boards],
            options=sdk.RunOptions.of(
                inventory=lab.inventory, parallelism=1, rounds=200, batch_size=12, pool_factor=1.2, epochs=20
            ),
            run_folder=folder / "run",
            settings=lab.settings,
            listen=listen,
            stop=stop,
        )
    finally:
        storm.end()
    ends, candidates = ends_of(folder / "run")
    lost = candidates - len(ends)
    doubled = sum(count > 1 for count in ends.values())
    header = result.best.header
    assert header is not None, "the run has a winner"
    names = [str(header), "adams2019"]
    tuned, default = sdk.bench(
        sdk.GeneratorSpec(GENERATOR, tuple(PARAMETERS)),
        names,
        target="x86-64",
        device="local",
        options=sdk.RunOptions.of(parallelism=1),
    )
    assert tuned.median_ms is not None and default.median_ms is not None, "both run"
    right = tuned.median_ms <= SLACK * default.median_ms
    return {
        "faults": sum(storm.faults.values()),
        "by kind": dict(storm.faults),
        "schedules": candidates,
        "timed": result.totals.samples_timed,
        "handed out again": sum(result.totals.incidents.values()),
        "failures": dict(result.totals.failures),
        "not done at the end": result.totals.not_done,
        "lost": lost,
        "counted twice": doubled,
        "winner against the default, undisturbed": f"{default.median_ms / tuned.median_ms:.2f} times as fast",
        "minutes": round(result.totals.duration_s / 60, 1),
        "passed": lost == 0 and doubled == 0 and right and sum(storm.faults.values()) >= faults,
    }


def ends_of(run_folder: Path) -> tuple[Counter[str], int]:
    """How often each schedule has a time or a failure, and how many schedules there are."""
    with sqlite3.connect(run_folder / "tuning.db") as database:
        timed = database.execute("SELECT symbol FROM measurements WHERE purpose = 'sample'").fetchall()
        failed = database.execute("SELECT symbol FROM failures WHERE symbol IS NOT NULL").fetchall()
        (candidates,) = database.execute("SELECT count(*) FROM candidates").fetchone()
    return Counter(symbol for (symbol,) in [*timed, *failed]), candidates


if __name__ == "__main__":
    sys.exit(main())
