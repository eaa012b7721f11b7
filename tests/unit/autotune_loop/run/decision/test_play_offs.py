"""What a run decides when schedules fail in its play-off, or somebody interrupts it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from halide_autotune.autotune_loop.deadline import Deadline
from halide_autotune.autotune_loop.events import Event, Listener, Notice
from halide_autotune.autotune_loop.execute.executor import Executor
from halide_autotune.autotune_loop.measure.batch_measurer import TaskReference
from halide_autotune.autotune_loop.play_off.course import PlayOffCourse, PlayOffResult, Turn
from halide_autotune.autotune_loop.play_off.run_play_off import PlayOffEntries, RunPlayOff
from halide_autotune.autotune_loop.play_off.times import ProcessTime
from halide_autotune.autotune_loop.run.budget.ending import RunEnding
from halide_autotune.autotune_loop.run.budget.run_budget import RunBudget
from halide_autotune.autotune_loop.run.budget.time_plan import TimePlan
from halide_autotune.autotune_loop.run.decision.play_offs import PlayOffs
from halide_autotune.autotune_loop.run.task_state import TaskState
from halide_autotune.autotune_loop.run.timed import Timed
from halide_autotune.autotune_loop.run_scale import process_error
from halide_autotune.autotune_loop.specification.objective import Objective
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.devices.device import Clock
from halide_autotune.devices.timing.measure_settings import Tolerance
from halide_autotune.targets.errors import KernelLinkError
from halide_autotune.targets.process.stop_signal import StopSignal
from tests.contract.writing_process import HEADER, RECORD
from tests.run_specs import make_task
from tests.scripted_executor import ScriptedExecutor

TIMES_S = {"first": 0.004, "second": 0.005, "default": 0.009}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    with closing(RunStore(tmp_path / "run", RECORD, resume=False)) as made:
        yield made


def play_offs(store: RunStore) -> PlayOffs:
    return PlayOffs(
        prepared=SimpleNamespace(clock=Clock.WALL, options=RunOptions()),  # type: ignore[arg-type]  # all that is asked of it
        store=store,
        executor=ScriptedExecutor(lambda task: pytest.fail(f"{task} was asked for")),
        dispatcher=SimpleNamespace(is_lost=False),  # type: ignore[arg-type]  # no play-off times here
        plan=TimePlan(RunBudget(None, 0.0), Clock.WALL, 1, 4),
        ending=RunEnding(StopSignal(), Deadline.after(None), lambda: None),
        listen=list[Event]().append,
        time_default=lambda state: None,
    )


def decided(
    store: RunStore, monkeypatch: pytest.MonkeyPatch, failing: set[str], *, is_stopped: bool = False
) -> tuple[str, list[set[str]]]:
    """The winner, and the contenders of each play-off; those that are failing fail in its first turn.

    Args:
        is_stopped: after that turn.
    """
    held: list[set[str]] = []

    def hold(play_off: RunPlayOff, entries: PlayOffEntries, reference: TaskReference, task_index: int) -> PlayOffResult:
        held.append({*entries.labels})

        def turn(names: Sequence[str], yardstick: str | None) -> Turn:
            times = {name: ProcessTime(TIMES_S[name], TIMES_S[name]) for name in names if name not in failing}
            play_off.on_failed(frozenset(failing & {*names}))
            return Turn({"pi": times}, frozenset(failing & {*names}), stopped=is_stopped)

        asked = (entries.labels, entries.baseline, Objective(), 7, turn, lambda: play_off.room.deadline.left_s)
        return PlayOffCourse(*asked, devices=["pi"], also_timed=entries.also_timed).run()

    monkeypatch.setattr(RunPlayOff, "hold", hold)
    tuned = play_offs(store).decide(new_state(store), 1)
    return tuned.published.symbol, held


def new_state(store: RunStore) -> TaskState:
    """As after the rounds, also those of a resumed run."""
    state = TaskState(0, make_task("blur"), TaskReference(None, Tolerance(), 1), confirmed=store.confirmed(0))
    for symbol, time_s in TIMES_S.items():
        time_one(store, state, symbol, time_s)
    return state


def time_one(store: RunStore, state: TaskState, symbol: str, time_s: float) -> None:
    for path in (store.object_path(symbol), store.result_path(store.samples / symbol)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEADER.format(body=f"// {symbol}"))
    is_default = symbol == "default"
    state.add_timed(Timed(symbol, symbol, "evolution", time_s * 1e3, 0.1, is_default, "pi", 3, process_error(3)))


def test_the_fastest_wins(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    assert decided(store, monkeypatch, set()) == ("first", [{"first", "default"}])


def test_where_what_challenged_fails_the_next_one_challenges(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was left out at first, because its time is clearly longer."""
    assert decided(store, monkeypatch, {"first"}) == ("second", [{"first", "default"}, {"second", "default"}])


def test_what_has_failed_is_not_published_by_a_play_off_that_is_stopped(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    winner, held = decided(store, monkeypatch, {"first"}, is_stopped=True)
    assert winner == "second" and len(held) == 1


def test_where_the_code_of_the_best_is_lost_those_after_it_challenge(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = play_offs(store)
    state = new_state(store)
    store.object_path("first").unlink()
    entries = over._entries(state, 6)
    assert entries is not None and {*entries.labels} == {"second", "default"}
    store.object_path("second").write_bytes(b"")  # as a power cut leaves it
    entries = over._entries(state, 6)
    assert entries is not None and {*entries.labels} == {"default"}, "none is left to challenge it"


@pytest.mark.parametrize(
    ("damaged", "times", "winner", "built"),
    [
        ("first", 1, "first", ["first"]),
        ("default", 1, "first", ["default"]),
        ("first", 2, "second", ["first"]),  # it calls what nothing defines: the one after it challenges
        ("default", 2, "first", ["default"]),  # without one there is no play-off
    ],
)
def test_code_that_cannot_be_linked_is_made_once_more(
    store: RunStore, monkeypatch: pytest.MonkeyPatch, damaged: str, times: int, winner: str, built: list[str]
) -> None:
    remade, held, told = list[str](), list[set[str]](), list[Event]()

    def restore(executor: Executor, of: RunStore, needed: Sequence[Timed], listen: Listener) -> None:
        for lost in [one.symbol for one in needed if not of.has_object(one.symbol)]:
            remade.append(lost)
            of.object_path(lost).write_text("made again")

    def hold(play_off: RunPlayOff, entries: PlayOffEntries, reference: TaskReference, task_index: int) -> PlayOffResult:
        held.append({*entries.labels})
        if damaged in entries.labels and len(held) <= times:
            raise KernelLinkError(f"{damaged} is cut short.", kernels=(damaged,))

        def turn(names: Sequence[str], yardstick: str | None) -> Turn:
            return Turn({"pi": {name: ProcessTime(TIMES_S[name], TIMES_S[name]) for name in names}})

        asked = (entries.labels, entries.baseline, Objective(), 7, turn, lambda: play_off.room.deadline.left_s)
        return PlayOffCourse(*asked, devices=["pi"], also_timed=entries.also_timed).run()

    monkeypatch.setattr("halide_autotune.autotune_loop.run.decision.play_offs.restore_objects", restore)
    monkeypatch.setattr(RunPlayOff, "hold", hold)
    over = replace(play_offs(store), listen=told.append)
    tuned = over.decide(new_state(store), 1)
    assert tuned.published.symbol == winner and remade == built
    is_hopeless = damaged == "default" and times == 2
    assert tuned.confirmed is not is_hopeless and len(held) == (2 if is_hopeless else times + 1)
    notices = [each.text for each in told if isinstance(each, Notice)]
    assert any("The play-off failed" in text for text in notices) is is_hopeless


def test_where_all_fail_the_default_stays(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    winner, held = decided(store, monkeypatch, {"first", "second"})
    assert winner == "default" and len(held) == 2


def test_what_a_play_off_has_confirmed_stays_if_there_is_no_time_for_another_one(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert decided(store, monkeypatch, set())[0] == "first"
    header = store.best_schedule(0).read_text()
    resumed = new_state(store)
    time_one(store, resumed, "later", 0.001)
    resumed.publish_best(store, "wall")
    over = play_offs(store)
    over.ending.stop()
    tuned = over.decide(resumed, 1)
    assert tuned.published.symbol == "first" and tuned.confirmed
    assert tuned.header is not None and tuned.header.read_text() == header


def test_the_next_play_off_has_what_the_one_before_has_confirmed(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided(store, monkeypatch, set())
    resumed = new_state(store)
    for number in range(8):
        time_one(store, resumed, f"later_{number}", 0.001)
    entries = resumed.entries(store, 6)
    assert entries is not None and {"first", "default", "later_0"} <= {*entries.labels}


def test_what_was_changed_by_hand_since_a_play_off_is_not_taken_for_confirmed(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided(store, monkeypatch, set())
    store.best_schedule(0).write_text(HEADER.format(body="// by hand"))
    assert store.confirmed(0) is None


def test_what_was_decided_before_an_interrupt_stays(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    made, asked = play_offs(store), list[tuple[int, int]]()

    def decide(state: TaskState, to_come: int) -> int:
        asked.append((state.task_index, to_come))
        if len(asked) == 2:
            raise KeyboardInterrupt
        return state.task_index

    monkeypatch.setattr(made, "decide", decide)
    states = [TaskState(place, make_task("blur"), TaskReference(None, Tolerance(), 1)) for place in range(3)]
    with pytest.raises(KeyboardInterrupt):
        made.decide_all(states)
    assert made.decide_all(states) == (0, 1, 2)
    assert asked == [(0, 3), (1, 2), (1, 2), (2, 1)]
