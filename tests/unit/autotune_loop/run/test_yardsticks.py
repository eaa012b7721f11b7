"""The best schedule becomes the yardstick, and a resumed run goes on with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from halide_autotune.autotune_loop.candidate import Origin, Placement, Yardstick
from halide_autotune.autotune_loop.measure.batch_measurer import TaskReference
from halide_autotune.autotune_loop.play_off.incumbent import Incumbent
from halide_autotune.autotune_loop.play_off.reserve import PLAY_OFF_CONTENDERS
from halide_autotune.autotune_loop.run.recovery import recover_yardsticks, settle_samples
from halide_autotune.autotune_loop.run.task_state import TaskState
from halide_autotune.autotune_loop.run.timed import Timed
from halide_autotune.autotune_loop.run_scale import RunScale, process_error
from halide_autotune.autotune_loop.store.featurization import Featurization, format_featurization
from halide_autotune.autotune_loop.store.published import INCUMBENT, OWN
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.autotune_loop.store.sample_file import read_sample
from halide_autotune.devices.timing.measure_settings import Tolerance
from halide_autotune.devices.timing.measurement import Beside, Measurement
from halide_autotune.targets.build.executable import KernelObject
from tests.contract.writing_process import RECORD, candidate, measurement
from tests.run_specs import make_task


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    made = RunStore(tmp_path / "run", RECORD, resume=False)
    yield made
    made.close()


def new_state(store: RunStore) -> TaskState:
    """As it is once the reference is timed: 10 ms."""
    state = TaskState(0, make_task("blur"), TaskReference(None, Tolerance(), 1))
    scale = store.database.scales().get(0) or RunScale("pi", [10.0])
    reference = Yardstick(KernelObject("reference", Path("reference.o")), scale)
    if not store.database.yardsticks():
        store.database.add_yardstick(0, reference)
    state.use_yardstick(reference)
    return state


def time_schedule(
    store: RunStore, state: TaskState, symbol: str, median_ms: float, *, is_timed_anew: bool = True
) -> None:
    path = store.object_path(symbol)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"object")
    state.add_timed(Timed(symbol, symbol, "random search", median_ms, 0.1, False, "pi", 3, is_timed_anew=is_timed_anew))


def time_well(store: RunStore, state: TaskState, times_ms: Mapping[str, float]) -> None:
    """Time schedules in three processes each, beside a yardstick; one may be the default."""
    for symbol, median_ms in times_ms.items():
        path = store.object_path(symbol)
        path.parent.mkdir(parents=True)
        path.write_bytes(b"object")
        is_default = symbol == "default"
        state.add_timed(Timed(symbol, symbol, "random search", median_ms, 0.1, is_default, "pi", 3, process_error(3)))


def test_a_much_faster_schedule_becomes_the_yardstick(store: RunStore) -> None:
    state = new_state(store)
    time_schedule(store, state, "fast", 5.0)
    state.advance_yardstick(store)
    assert state.yardstick is not None
    assert (state.yardstick.kernel.name, state.yardstick.time_ms) == ("fast", 5.0)
    time_schedule(store, state, "faster", 3.0)
    state.advance_yardstick(store)
    assert [one.kernel.name for one in state.yardsticks] == ["fast", "faster"]
    assert 0 < state.yardsticks[0].log_error < state.yardsticks[1].log_error < 0.1


@pytest.mark.parametrize(("median_ms", "is_timed_anew"), [(9.5, True), (5.0, False)], ids=["little gain", "by luck"])
def test_one_that_is_little_faster_or_was_not_timed_once_more_does_not(
    store: RunStore, median_ms: float, is_timed_anew: bool
) -> None:
    state = new_state(store)
    time_schedule(store, state, "fast", median_ms, is_timed_anew=is_timed_anew)
    state.advance_yardstick(store)
    assert [one.kernel.name for one in state.yardsticks] == ["reference"]


def test_the_object_of_a_yardstick_is_kept(store: RunStore) -> None:
    """A batch that is being built may still be linked with the one before."""
    state = new_state(store)
    for symbol, median_ms in {"first": 8.0, "second": 6.0, "third": 4.0, "fourth": 3.0, "fifth": 2.0}.items():
        time_schedule(store, state, symbol, median_ms)
        state.advance_yardstick(store)
    for number in range(6):
        time_schedule(store, state, f"equal_{number}", 1.95 - number / 100)
    state.prune(store, 4)
    there = {
        symbol for symbol in ("first", "second", "third", "fourth", "fifth") if store.object_path(symbol).is_file()
    }
    assert there == {"fourth", "fifth"}


def test_a_resumed_run_goes_on_with_the_newest_whose_object_is_there(store: RunStore) -> None:
    state = new_state(store)
    for symbol, median_ms in {"first": 8.0, "second": 6.0, "third": 4.0}.items():
        time_schedule(store, state, symbol, median_ms)
        state.advance_yardstick(store)
    store.object_path("third").unlink()
    resumed = new_state(store)
    recover_yardsticks(store, [resumed])
    assert resumed.yardstick is not None
    assert (resumed.yardstick.kernel.name, resumed.yardstick.time_ms) == ("second", 6.0)


def test_one_that_was_timed_once_stands_behind_one_that_was_proven(store: RunStore) -> None:
    """The fastest of many single timings is above all a lucky one."""
    state = new_state(store)
    state.add_timed(Timed("proven", "proven", "random search", 5.0, 0.1, False, "pi", 3, process_error(3)))
    state.add_timed(Timed("lucky", "lucky", "random search", 4.95, 0.1, False, "pi", 1, process_error(1)))
    assert [timed.symbol for timed in state.timed] == ["proven", "lucky"]


def test_the_play_off_takes_those_that_may_be_the_best_and_the_default(store: RunStore) -> None:
    state = new_state(store)
    assert state.contenders == PLAY_OFF_CONTENDERS, "nothing is known yet"
    time_well(store, state, {"best": 4.0, "close": 4.1, "slower": 5.0, "default": 9.0})
    entries = state.entries(store, 4)
    assert entries is not None
    assert set(entries.labels) == {"best", "close", "default"}
    assert state.contenders == 3
    assert entries.baseline == "default"


def test_a_default_that_is_clearly_the_fastest_is_compared_with_the_next(store: RunStore) -> None:
    state = new_state(store)
    time_well(store, state, {"default": 4.0, "slower": 9.0, "slowest": 9.5})
    entries = state.entries(store, 4)
    assert entries is not None and set(entries.labels) == {"default", "slower"}


@pytest.mark.parametrize(("name", "origin"), [(OWN, Origin.OWN_SCHEDULE), (INCUMBENT, Origin.INCUMBENT)])
def test_what_is_in_use_does_not_challenge_itself(store: RunStore, name: str, origin: Origin) -> None:
    """As a candidate it is the same code; on a simulated clock a difference of 0.7 % was told as a gain."""
    state = new_state(store)
    for symbol in ("twin", "close", "own_a0"):
        path = store.object_path(symbol)
        path.parent.mkdir(parents=True)
        path.write_bytes(b"object")
    state.add_timed(Timed("twin", "twin", origin.value, 4.0, 0.1, False, "pi", 3, process_error(3)))
    state.add_timed(Timed("close", "close", "evolution", 4.1, 0.1, False, "pi", 3, process_error(3)))
    alone = state.entries(store, 4)
    assert alone is not None and set(alone.labels) == {"twin", "close"}, "nothing else is in use"
    state.incumbent = Incumbent(name, "own_a0", None)
    entries = state.entries(store, 4)
    assert entries is not None and set(entries.labels) == {"close", "own_a0"} and entries.baseline == "own_a0"


def test_users_see_times_as_the_reference_is_known_now(store: RunStore) -> None:
    """It was first timed while the machine was slow."""
    state = new_state(store)
    time_schedule(store, state, "fast", 5.0)
    assert state.scale is not None
    for _ in range(9):
        state.scale.add("pi", 4.0)
    assert state.shown_ms(state.best_ms) == pytest.approx(2.0)
    between = state.shown_range_ms(state.timed[0])
    assert between is not None
    assert between[0] < 2.0 < between[1] < 12.0


def disturbed_beside(beside_s: float) -> Measurement:
    beside = Beside("reference", (beside_s,) * 3, (True,) * 3, (True,) * 3)
    return replace(measurement("k", 1e-3), repetitions_s=(1e-3,) * 3, disturbed=(False,) * 3, beside=beside)


def test_a_ratio_from_a_moment_of_other_load_is_not_trusted() -> None:
    """A short kernel runs between the turns of others while its yardstick, which takes longer, is slowed down."""
    yardstick = Yardstick(KernelObject("reference", Path("reference.o")), RunScale("pi", [4.0]))
    usual, loaded = yardstick.place(disturbed_beside(4.4e-3)), yardstick.place(disturbed_beside(16e-3))
    assert usual is not None and loaded is not None
    assert (usual.relative, usual.reference_ms) == (pytest.approx(1 / 4.4), pytest.approx(4.4))
    assert loaded.is_disturbed and loaded.relative == pytest.approx(1 / 8)
    slower_board = yardstick.place(replace(disturbed_beside(8.8e-3), factor=0.5))
    assert slower_board is not None and not slower_board.is_disturbed, "as usual on a board of half the speed"
    assert slower_board.reference_ms == pytest.approx(8.8)


def test_a_resumed_run_trusts_such_times_no_more_than_before(store: RunStore) -> None:
    new_state(store)
    one = candidate(store.candidate_folder(0, 0, 0), 0, 0)
    store.database.add_candidate(one)
    timed = replace(measurement(one.symbol, 1e-3), device="pi")
    for purpose, placement in (("sample", Placement(0.1, None)), ("race", Placement(0.2, None))):
        store.database.add_measurement(timed, purpose, 0.1, placement)
        (found,) = store.database.measured()
        assert found.is_disturbed and found.median_ms == pytest.approx(1.0)
    store.database.add_measurement(timed, "race", 0.1, Placement(0.5, 10.0))
    (found,) = store.database.measured()
    assert not found.is_disturbed and found.median_ms == pytest.approx(5.0)
    assert store.database.scales()[0].settled_ms == pytest.approx(10.0)


def test_samples_of_a_finished_run_have_the_times_that_it_reports(store: RunStore) -> None:
    state = new_state(store)
    one = candidate(store.candidate_folder(0, 0, 0), 0, 0)
    store.database.add_candidate(one)
    folder = store.samples / one.sample
    folder.mkdir(parents=True)
    features = Featurization(np.ones((2, 39), np.float32), np.ones((2, 287), np.float32))
    store.featurization_path(folder).write_bytes(format_featurization(features))
    # The reference was first timed at 10 ms; it takes 4.
    timed = replace(measurement(one.symbol, 2e-3), device="pi")
    for purpose in ("sample", "race", "race", "race"):
        store.database.add_measurement(timed, purpose, 0.1, Placement(0.5, 4.0))
    settle_samples(store, [state])
    assert read_sample(store.sample_path(folder)).runtime_ms == pytest.approx(2.0)
    assert [found.median_ms for found in store.database.measured()] == pytest.approx([2.0])


def test_without_noise_there_is_no_yardstick(store: RunStore) -> None:
    state = TaskState(0, make_task("blur"), TaskReference(None, Tolerance(), 1))
    time_schedule(store, state, "fast", 5.0)
    state.advance_yardstick(store)
    recover_yardsticks(store, [state])
    assert state.yardstick is None
