"""Which schedules are tried at a size, before a size gets a schedule of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.deadline import Deadline
from halide_autotune.autotune_loop.events import Event, Notice
from halide_autotune.autotune_loop.measure.batch_measurer import TaskReference
from halide_autotune.autotune_loop.run.budget.ending import RunEnding
from halide_autotune.autotune_loop.run.budget.run_budget import RunBudget
from halide_autotune.autotune_loop.run.budget.time_plan import TimePlan
from halide_autotune.autotune_loop.run.decision.size_play_offs import SizePlayOffs, may_be_faster_at
from halide_autotune.autotune_loop.run.result import TunedSchedule
from halide_autotune.autotune_loop.run.task_state import TaskState
from halide_autotune.autotune_loop.run.timed import Timed, fastest_at_sizes
from halide_autotune.autotune_loop.store.published import NOTHING
from halide_autotune.autotune_loop.store.read_database import read_database
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.autotune_loop.store.size_schedules import SizeSchedule, read_size_schedules
from halide_autotune.devices.device import Clock
from halide_autotune.devices.timing.measure_settings import KernelInputs, Tolerance
from halide_autotune.targets.process.stop_signal import StopSignal
from tests.contract.writing_process import HEADER, RECORD
from tests.run_specs import make_task
from tests.scripted_executor import ScriptedExecutor


def timed(name: str, small_ms: float, large_ms: float, log_error: float = 0.0) -> Timed:
    mean_ms = (small_ms * large_ms) ** 0.5
    by_size_ms = {"small": small_ms, "large": large_ms}
    return Timed(name, name, "random search", mean_ms, 0.1, False, "pi", log_error=log_error, by_size_ms=by_size_ms)


WINNER = timed("winner", 1.0, 10.0)


def test_what_is_much_faster_at_a_size_is_tried_there() -> None:
    others = [
        timed("small", 0.8, 20.0),
        timed("smaller", 0.7, 30.0),
        timed("large", 3.0, 9.5),
        timed("slow", 5.0, 50.0),
    ]
    everything = [WINNER, *others]
    assert [one.symbol for one in may_be_faster_at("small", WINNER, everything)] == ["smaller", "small"]
    assert may_be_faster_at("large", WINNER, everything) == []
    assert fastest_at_sizes(everything, 1) == {"smaller", "large"}


def test_an_error_of_the_times_lets_more_be_tried() -> None:
    assert may_be_faster_at("large", WINNER, [timed("large", 3.0, 9.5)]) == []
    assert may_be_faster_at("large", WINNER, [timed("large", 3.0, 9.5, log_error=0.05)])


def test_at_most_three_are_tried() -> None:
    many = [timed(str(index), 0.5 + 0.01 * index, 20.0) for index in range(6)]
    assert [one.symbol for one in may_be_faster_at("small", WINNER, many)] == ["0", "1", "2"]


def test_schedules_without_times_at_the_sizes_are_left_out() -> None:
    alone = Timed("alone", "alone", "random search", 0.1, 0.1, False, "pi")
    assert may_be_faster_at("small", WINNER, [alone]) == [] == may_be_faster_at("small", alone, [WINNER])


INPUTS = KernelInputs(sizes={"output": "64x48"}, also_sizes=("output=640x480",))
SMALL, LARGE = "output=64x48", "output=640x480"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    with closing(RunStore(tmp_path / "run", RECORD, resume=False)) as made:
        yield made


def decided(
    store: RunStore, others: list[Timed], inputs: KernelInputs = INPUTS, budget_s: float | None = None
) -> tuple[TunedSchedule, list[Event]]:
    """What a run without devices decides: no play-off can be held."""

    def no_play_off(room: object) -> None:
        pytest.fail("a play-off is held")

    header = store.samples / "best.blur.schedule.h"
    header.write_text(HEADER.format(body=""))
    winner = replace(WINNER, by_size_ms={SMALL: 1.0, LARGE: 10.0})
    state = TaskState(0, make_task("blur"), TaskReference(None, Tolerance(), 1), timed=[winner, *others])
    published = replace(NOTHING, sample=winner.sample, symbol=winner.symbol, confirmed=True)
    plan = TimePlan(RunBudget(budget_s, 0.0), Clock.WALL, 1, 4)
    told: list[Event] = []
    executor = ScriptedExecutor(lambda task: pytest.fail(f"{task} was asked for"))
    ending = RunEnding(StopSignal(), Deadline.after(None), lambda: None)
    # `inputs` has all that is asked of it.
    play_offs = SizePlayOffs(inputs, store, executor, plan, ending, told.append, no_play_off)  # type: ignore[arg-type]
    return play_offs.decide(state, TunedSchedule({}, "blur", "", header, published)), told


def recorded(store: RunStore, header: Path) -> tuple[SizeSchedule, ...]:
    path, sha256 = store.folder / "tuning.db", hashlib.sha256(header.read_bytes()).hexdigest()
    return read_database(path, lambda connection: read_size_schedules(connection, path, 0, sha256))


def test_where_nothing_seems_much_faster_the_winner_is_used_everywhere(store: RunStore) -> None:
    tuned, told = decided(store, [replace(timed("a", 0.95, 9.5), by_size_ms={SMALL: 0.95, LARGE: 9.5})])
    assert [one.extents for one in tuned.size_schedules] == ["64x48", "640x480"] and told == []
    assert {one.message for one in tuned.size_schedules} == {"No other schedule seemed over 10 % faster there."}
    assert not any(one.is_own or one.is_unconfirmed for one in tuned.size_schedules)
    assert tuned.header is not None and recorded(store, tuned.header) == tuned.size_schedules


def test_without_time_for_a_play_off_a_size_keeps_the_winner_and_is_told(store: RunStore) -> None:
    fast = replace(timed("fast", 0.5, 20.0), by_size_ms={SMALL: 0.5, LARGE: 20.0})
    tuned, told = decided(store, [fast], budget_s=1e-9)
    small, large = tuned.size_schedules
    assert small.is_unconfirmed and not small.is_own and not large.is_unconfirmed
    (notice,) = told
    assert isinstance(notice, Notice) and notice.text == (
        "The budget left no time for a play-off at output=64x48, where fast may be faster."
        " Resume the run with a larger budget."
    )


def test_a_run_at_one_size_or_whose_sizes_no_call_can_tell_has_one_schedule(store: RunStore) -> None:
    assert decided(store, [], replace(INPUTS, also_sizes=()))[0].size_schedules == ()
    alike = KernelInputs(sizes={"output": "64x48"}, scalars={"radius": "1"}, also_sizes=("radius=2",))
    tuned, (notice,) = decided(store, [], alike)
    assert tuned.size_schedules == ()
    assert isinstance(notice, Notice) and notice.text.endswith("one schedule is for all of them.")
