"""What injects the faults of a storm: one injector for each board, so that faults on different boards overlap."""

from __future__ import annotations

import contextlib
import math
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.killed_tuner import Event
from benchmarks.storm_kinds import KINDS, Kind, MissedError, Scene, await_kernel, programs
from tests.remote_board import RemoteBoard

# After so many faults of 100 an injector waits until its board gives a time again, though not for longer than that;
# after the others the next one follows at once.
_WAITS_PERCENT, _LONGEST_WAIT_S = 50, 30.0
_PAUSE_S = (0.1, 1.0)
# The last ones are recovered from, too.
_PEACE_S = 10.0
_LOOK_S = 0.05
_TOLD_EVERY = 10


@dataclass
class Recovery:
    """A fault, and when its board gave a time again.

    Attributes:
        alone: no other fault concerned the board before that.
        took_s: from the fault's end; None until then.
    """

    kind: str
    board: str
    ended_s: float
    alone: bool = True
    took_s: float | None = None


@dataclass
class Storm:
    """Injects these faults, each once, into whichever board it fits whose injector is free.

    Attributes:
        kinds: what is yet to be injected, in this order.
        enough: set when there is nothing left, or the time is over.
        limit_s: how long it may last.
        faults: the kinds that were injected, in order.
        missed: attempts that found nothing to spoil, and were made again later.
        in_a_kernel: how many began while a kernel was being timed.
        overlapped: how many began while another fault lasted.
        recoveries: one for each fault.
    """

    scene: Scene
    kinds: list[str]
    enough: threading.Event
    limit_s: float = math.inf
    faults: list[str] = field(default_factory=list)
    missed: int = 0
    in_a_kernel: int = 0
    overlapped: int = 0
    recoveries: list[Recovery] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._begun = threading.Event()
        self._lock = threading.Lock()
        self._lasting = 0
        self._injectors = [threading.Thread(target=self._run, args=(board,)) for board in self.scene.boards]
        self._thread = threading.Thread(target=self._run_all)

    def listen(self, event: Event) -> None:
        """Take the run's events: it begins with the first time, and times say which board is back."""
        if event.get("event") != "sample_measured":
            return
        if not self._begun.is_set():
            self._begun.set()
            self._thread.start()
        now_s = time.monotonic()
        with self._lock:
            for one in self.recoveries:
                if one.took_s is None and one.board == event["device"]:
                    one.took_s = now_s - one.ended_s

    def end(self) -> None:
        """Inject nothing more, and wait until what lasts is over."""
        self.scene.over.set()
        if self._begun.is_set():
            self._thread.join()

    def _run_all(self) -> None:
        try:
            for injector in self._injectors:
                injector.start()
            for injector in self._injectors:
                injector.join()
            self.scene.over.wait(_PEACE_S)
        finally:
            self.enough.set()
            self.scene.tuner.interrupt()

    def _run(self, board: RemoteBoard) -> None:
        scene, until_s = self.scene, time.monotonic() + self.limit_s
        while time.monotonic() < until_s and (name := self._next(board)) is not None:
            if scene.over.wait(scene.chance.uniform(*_PAUSE_S)):
                return
            try:
                recovery = self._inject(name, board)
            except MissedError:
                with self._lock:
                    self.missed += 1
                    self.kinds.insert(scene.chance.randrange(len(self.kinds) + 1), name)
                continue
            if scene.chance.randrange(100) < _WAITS_PERCENT:
                self._await(recovery)

    def _next(self, board: RemoteBoard) -> str | None:
        with self._lock:
            for place, name in enumerate(self.kinds):
                if KINDS[name].fits(self.scene, board):
                    return self.kinds.pop(place)
        return None

    def _inject(self, name: str, board: RemoteBoard) -> Recovery:
        scene, kind = self.scene, KINDS[name]
        with self._turn(kind, board) as has_kernel:
            with self._lock:
                self._disturb(kind, board)
                is_overlapping, self._lasting = self._lasting > 0, self._lasting + 1
            try:
                with kind.fault(scene, board):
                    scene.over.wait(scene.chance.uniform(*kind.hold_s))
            finally:
                with self._lock:
                    self._lasting -= 1
            with self._lock:
                if kind.starts_again:
                    self._disturb(kind, board)
                self.faults.append(name)
                self.in_a_kernel += has_kernel
                self.overlapped += is_overlapping
                recovery = Recovery(name, board.name, time.monotonic())
                self.recoveries.append(recovery)
                if len(self.faults) % _TOLD_EVERY == 0:
                    print(f"{len(self.faults)} faults, {self.in_a_kernel} in a kernel", file=sys.stderr)
        return recovery

    @contextlib.contextmanager
    def _turn(self, kind: Kind, board: RemoteBoard) -> Iterator[bool]:
        """The moment for a fault, and whether a kernel is being timed; faults that concern everybody take turns."""
        is_found = kind.in_a_kernel and bool(await_kernel(self.scene, board))
        if not kind.concerns_all:
            yield is_found
            return
        self.scene.turn.acquire()
        try:
            # The one before has mostly ended it.
            if is_found and not programs(board):
                is_found = bool(await_kernel(self.scene, board))
            yield is_found
        finally:
            self.scene.turn.release()

    def _disturb(self, kind: Kind, board: RemoteBoard) -> None:
        for one in self.recoveries:
            if one.took_s is None and (kind.concerns_all or kind.starts_again or one.board == board.name):
                one.alone = False

    def _await(self, recovery: Recovery) -> None:
        until_s = recovery.ended_s + _LONGEST_WAIT_S
        while recovery.took_s is None and time.monotonic() < until_s and not self.scene.over.wait(_LOOK_S):
            pass


def mixed_kinds(scene: Scene, faults: int) -> list[str]:
    """So many kinds that fit the scene, each as often as the others, in random order."""
    fitting = [name for name, kind in KINDS.items() if any(kind.fits(scene, board) for board in scene.boards)]
    kinds = (fitting * (faults // len(fitting) + 1))[:faults]
    scene.chance.shuffle(kinds)
    return kinds


def recovery_times_s(recoveries: Sequence[Recovery]) -> dict[str, dict[str, list[float]]]:
    """Kind → the seconds after which boards gave a time again: those with no other fault before, and the others."""
    times_s: dict[str, dict[str, list[float]]] = {kind: {"alone": [], "with others": []} for kind in KINDS}
    for one in recoveries:
        if one.took_s is not None:
            times_s[one.kind]["alone" if one.alone else "with others"].append(one.took_s)
    return times_s
