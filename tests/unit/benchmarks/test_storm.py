"""The injectors of a storm: every fault once, on boards that do not wait for each other, and what is told of it."""

from __future__ import annotations

import contextlib
import random
import threading
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import storm
from benchmarks.storm import Recovery, Storm, recovery_times_s
from benchmarks.storm_kinds import Kind, MissedError, Scene

PATIENCE_S = 60.0
A_TIME = {"event": "sample_measured", "device": "one"}


class Tuner:
    """Counts how often it is interrupted."""

    def __init__(self) -> None:
        self.interrupts = 0

    def interrupt(self) -> None:
        self.interrupts += 1


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"_WAITS_PERCENT": 0, "_PAUSE_S": (0.0, 0.0), "_PEACE_S": 0.0}.items():
        monkeypatch.setattr(storm, name, value)
    monkeypatch.setattr(storm, "await_kernel", lambda scene, board: [1])
    monkeypatch.setattr(storm, "programs", lambda board: [1])


def started(kinds: dict[str, Kind], faults: list[str], monkeypatch: pytest.MonkeyPatch) -> Storm:
    monkeypatch.setattr(storm, "KINDS", kinds)
    boards: list[Any] = [SimpleNamespace(name=name) for name in ("one", "two")]
    tuner: Any = Tuner()
    begun = Storm(Scene(boards, tuner, random.Random(1)), list(faults), threading.Event())
    begun.listen({**A_TIME, "device": "none of them"})
    assert begun.enough.wait(PATIENCE_S)
    begun.end()
    return begun


def test_faults_on_two_boards_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    meeting = threading.Barrier(2, timeout=PATIENCE_S)

    @contextlib.contextmanager
    def meet(scene: Scene, board: Any) -> Iterator[None]:
        meeting.wait()
        yield

    done = started({"meet": Kind(meet)}, ["meet", "meet"], monkeypatch)
    assert sorted(one.board for one in done.recoveries) == ["one", "two"]
    assert (done.overlapped, done.in_a_kernel) == (1, 2)


def test_every_fault_happens_once_though_some_attempts_find_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts: Counter[str] = Counter()

    @contextlib.contextmanager
    def shy(scene: Scene, board: Any) -> Iterator[None]:
        attempts["shy"] += 1
        if attempts["shy"] % 2:
            raise MissedError
        yield

    @contextlib.contextmanager
    def bold(scene: Scene, board: Any) -> Iterator[None]:
        assert board.name == "two"
        yield

    kinds = {"shy": Kind(shy, in_a_kernel=False), "bold": Kind(bold, fits=lambda scene, board: board.name == "two")}
    done = started(kinds, ["shy", "bold"] * 10, monkeypatch)
    assert Counter(done.faults) == {"shy": 10, "bold": 10}
    assert (attempts["shy"], done.missed, done.in_a_kernel) == (20, 10, 10)
    assert len(done.recoveries) == 20


def test_faults_that_concern_everybody_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    lasting: list[str] = []

    @contextlib.contextmanager
    def alone(scene: Scene, board: Any) -> Iterator[None]:
        lasting.append(board.name)
        yield
        assert lasting == [board.name]
        lasting.remove(board.name)

    done = started({"alone": Kind(alone, (0.0, 0.01), concerns_all=True)}, ["alone"] * 20, monkeypatch)
    assert done.faults == ["alone"] * 20 and not done.overlapped


def test_a_recovery_with_another_fault_before_it_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def short(scene: Scene, board: Any) -> Iterator[None]:
        yield

    done = started({"short": Kind(short, fits=lambda scene, board: board.name == "one")}, ["short"] * 3, monkeypatch)
    assert [one.alone for one in done.recoveries] == [False, False, True]
    assert all(one.took_s is None for one in done.recoveries)
    done.listen({**A_TIME, "device": "two"})
    assert all(one.took_s is None for one in done.recoveries)
    done.listen(A_TIME)
    assert all(one.took_s is not None for one in done.recoveries)


def test_times_of_recovery_by_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storm, "KINDS", {"heat": None, "hang": None})
    recoveries = [Recovery("heat", "one", 0.0, True, 2.0), Recovery("heat", "one", 0.0, False, 5.0)]
    assert recovery_times_s([*recoveries, Recovery("hang", "one", 0.0)]) == {
        "heat": {"alone": [2.0], "with others": [5.0]},
        "hang": {"alone": [], "with others": []},
    }
