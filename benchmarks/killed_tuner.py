"""`sdk autotune` as a process that is killed and gone on with, and what is to be found after its run."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from halide_autotune.devices.timing.measurement import MeasureFailureReason
from tests.loopback_farm import sdk_program

Event = Mapping[str, object]
_MOST_STARTS_IN_VAIN = 10
_GONE_WITHIN_S = 30.0
INTERRUPTED = 130
_GIVEN_UP = (MeasureFailureReason.DEVICE.value, MeasureFailureReason.STOPPED.value)


def heed_interrupts() -> None:
    """Let the processes that this one starts hear Ctrl-C, which what a shell starts in the background ignores.

    Called by the main thread.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Tuner:
    """A run, whose process may be killed at any moment.

    Attributes:
        folder: holds the run, and the temporary files of all its processes, which start there.
        run_folder: the run's.
        starts: processes so far.
    """

    def __init__(self, folder: Path, asked: Sequence[str], environment: Mapping[str, str]) -> None:
        self.folder, self.run_folder = folder, folder / "run"
        self._asked = list(asked)
        self._environment = {**environment, "TMPDIR": str(folder / "tmp")}
        (folder / "tmp").mkdir(parents=True)
        self._log = folder / "log.txt"
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._started_s = 0.0
        self._is_interrupted = False
        self.starts = 0

    def run(
        self, listen: Callable[[Event], None], changes: Sequence[str] = (), unless: threading.Event | None = None
    ) -> tuple[int, Event]:
        """Start or go on, and wait for the end; returns the exit code and the last event.

        Args:
            listen: called with every event.
            changes: options of a run that is gone on with.
            unless: if it is set, nothing is started.
        """
        begun = (self.run_folder / "run.toml").exists()
        words = ["--resume", *changes] if begun else self._asked
        with self._lock, self._log.open("a") as log:
            if unless is not None and unless.is_set():
                return 0, {}
            self._process = process = subprocess.Popen(
                [sys.executable, *sdk_program(), "autotune", *words, "--run-dir", str(self.run_folder), "--json"],
                cwd=self.folder,
                env=self._environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
            self._started_s, self._is_interrupted = time.monotonic(), False
        self.starts += 1
        assert process.stdout is not None
        event: Event = {}
        for line in process.stdout:
            with contextlib.suppress(json.JSONDecodeError):  # the last line of a killed process may be cut
                event = json.loads(line)
                listen(event)
        process.stdout.close()
        return process.wait(), event

    def run_until(self, enough: threading.Event, listen: Callable[[Event], None]) -> None:
        """Go on again and again until `enough` is set; `interrupt` then ends the last process."""
        in_vain = 0

        def hear(event: Event) -> None:
            nonlocal in_vain
            in_vain = 0 if event["event"] == "sample_measured" else in_vain
            listen(event)

        while not enough.is_set():
            code, last = self.run(hear, unless=enough)
            in_vain += int(code > 0 and code != INTERRUPTED)
            if in_vain == _MOST_STARTS_IN_VAIN:
                raise RuntimeError(f"The run does not go on: {last}; see {self._log}: {self._log.read_text()[-2000:]}")

    def next_round(self) -> int:
        """How many rounds have begun."""
        batches = self.run_folder.glob("samples/batch_*")
        return max((int(path.name.split("_")[1]) + 1 for path in batches), default=0)

    def kill(self) -> bool:
        """SIGKILL; whether it ran."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                return False
            self._process.kill()
            return True

    def interrupt(self, started_before_s: float = math.inf) -> None:
        """Ctrl-C, once, if it runs and was started before that monotonic time."""
        with self._lock:
            if self._process is not None and self._started_s < started_before_s and not self._is_interrupted:
                self._is_interrupted = True
                self._process.send_signal(signal.SIGINT)


@dataclass(frozen=True)
class Account:
    """What became of the schedules that were chosen.

    Attributes:
        chosen: all of them.
        timed, failed: those with a time or a failure of their own.
        given_up: those without, because of devices, or because the run ended.
        doubled: counted twice.
        lost: with no end at all.
    """

    chosen: int
    timed: int
    failed: int
    given_up: int
    doubled: int
    lost: int

    @property
    def is_whole(self) -> bool:
        """Whether nothing is lost or doubled and the counts add up."""
        return not (self.lost or self.doubled) and self.chosen == self.timed + self.failed + self.given_up


def account_of(run_folder: Path, result: Event) -> Account:
    """Add up what the database has, which must be what the run has told at its end."""
    ends = ends_of(run_folder)
    with contextlib.closing(sqlite3.connect(run_folder / "tuning.db")) as database:
        chosen = {symbol for (symbol,) in database.execute("SELECT symbol FROM candidates")}
    reasons = {symbol: ends[symbol][0] for symbol in chosen & ends.keys()}
    given_up = sum(reason in _GIVEN_UP for reason in reasons.values())
    timed = sum(reason == "timed" for reason in reasons.values())
    told = result.get("samples_timed")
    return Account(
        chosen=len(chosen),
        timed=timed,
        failed=len(reasons) - timed - given_up,
        given_up=given_up,
        doubled=sum(len(end) > 1 for end in ends.values()) + abs(timed - int(str(told))),
        lost=len(chosen - ends.keys()),
    )


def ends_of(run_folder: Path) -> dict[str, list[str]]:
    """Schedule → 'timed', or why it was not; more than one where it counted more than once."""
    ends: dict[str, list[str]] = {}
    with contextlib.closing(sqlite3.connect(run_folder / "tuning.db")) as database:
        for (symbol,) in database.execute("SELECT symbol FROM measurements WHERE purpose = 'sample'"):
            ends.setdefault(symbol, []).append("timed")
        # One that failed in a race has its first time.
        wanted = "symbol IS NOT NULL AND stage <> 'race'"
        failures = database.execute(f"SELECT symbol, reason FROM failures WHERE {wanted}").fetchall()
    stopped = MeasureFailureReason.STOPPED.value
    for symbol, reason in failures:
        if reason != stopped:
            ends.setdefault(symbol, []).append(reason)
    # What an earlier process had left undone is mostly done by one that goes on.
    return {symbol: [stopped] for symbol, reason in failures if reason == stopped} | ends


def left_behind(folder: Path) -> list[str]:
    """Processes that run in or on behalf of a tuner's folder, and files that were not to stay there.

    What was killed with the tuner has a while to go.
    """
    until_s = time.monotonic() + _GONE_WITHIN_S
    while (found := _found_in(folder)) and time.monotonic() < until_s:
        time.sleep(0.1)
    return found


def _found_in(folder: Path) -> list[str]:
    here = str(folder)
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid != os.getpid() and here in " ".join([process.exe(), process.cwd(), *process.cmdline()]):
                found.append(f"process {process.pid}: {' '.join(process.cmdline())[:120]}")
    found += [f"file {path}" for path in (folder / "tmp").iterdir()]
    found += [f"file {path}" for path in (folder / "run").rglob(".*") if path.name != ".lock"]
    return found
