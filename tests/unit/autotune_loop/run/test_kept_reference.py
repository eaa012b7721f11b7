"""A resumed run goes on with the reference that its times are multiples of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.autotune_loop.execute.tasks.build_tasks import BuiltReference
from halide_autotune.autotune_loop.measure.batch_measurer import TaskReference
from halide_autotune.autotune_loop.run.kept_reference import KeptReference, keep_reference, read_kept_reference
from halide_autotune.autotune_loop.run.references import _Preparation
from halide_autotune.autotune_loop.run.task_state import TaskState
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.devices.device import Clock
from halide_autotune.devices.timing.measure_settings import Tolerance
from halide_autotune.devices.timing.measurement import Beside, Measurement
from halide_autotune.targets.build.executable import KernelObject
from halide_autotune.targets.errors import RunFolderError
from halide_autotune.targets.profile.profile import OWN_SCHEDULE
from tests.contract.writing_process import RECORD, candidate
from tests.run_specs import make_task

REFERENCE = "blur_reference_a0"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    made = RunStore(tmp_path / "run", RECORD, resume=False)
    yield made
    made.close()


def reference(autoscheduler: str, position: int = 0) -> BuiltReference:
    return BuiltReference(autoscheduler, KernelObject(REFERENCE, Path("r.o")), Path("r.h"), True, position, 1.0)


def use(store: RunStore, built: BuiltReference, time_ms: float, trouble: str = "") -> TaskState:
    """What a process does once the reference is timed."""
    preparation: Any = object.__new__(_Preparation)
    preparation.store, preparation.index, preparation._kept = store, 0, read_kept_reference(store.samples, 0)
    state = TaskState(0, make_task("blur"), TaskReference(None, Tolerance(), 1))
    timed = Measurement(REFERENCE, "pi", Clock.WALL, (time_ms * 1e-3,) * 3, "time", True, disturbed=(False,) * 3)
    preparation._use_as_yardstick(state, built, timed, trouble)
    return state


def time_beside(store: RunStore, state: TaskState, time_ms: float, reference_ms: float) -> None:
    one, marks = candidate(store.candidate_folder(0, 0, 0), 0, 0), (False,) * 3
    store.database.add_candidate(one)
    beside = Beside(REFERENCE, (reference_ms * 1e-3,) * 3, marks, marks)
    timed = Measurement(
        one.symbol, "pi", Clock.WALL, (time_ms * 1e-3,) * 3, "time", True, disturbed=marks, beside=beside
    )
    assert state.yardstick is not None
    store.database.add_measurement(timed, "sample", 0.1, state.yardstick.place(timed))


def test_what_is_kept_is_read_back(tmp_path: Path) -> None:
    assert read_kept_reference(tmp_path, 3) is None
    keep_reference(tmp_path, 3, reference("Li2018", 1))
    assert read_kept_reference(tmp_path, 3) == KeptReference("Li2018", 1)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"autoscheduler": "Li2018", "position": -1}'])
def test_a_damaged_file_is_told(tmp_path: Path, text: str) -> None:
    keep_reference(tmp_path, 0, reference("Li2018"))
    (file,) = tmp_path.rglob("*.json")
    file.write_text(text)
    with pytest.raises(RunFolderError, match="reference.json") as refused:
        read_kept_reference(tmp_path, 0)
    assert "start a new run" in refused.value.next_step


def test_a_run_goes_on_with_its_reference(store: RunStore) -> None:
    first = use(store, reference("Li2018", 1), 10.0)
    time_beside(store, first, 9.0, 10.0)
    resumed = use(store, reference("Li2018", 1), 10.5)
    assert resumed.yardstick is not None and resumed.yardstick.time_ms == pytest.approx(10.0)


def test_another_one_is_refused_once_times_are_multiples_of_the_first(store: RunStore) -> None:
    first = use(store, reference("Li2018", 1), 10.0)
    time_beside(store, first, 9.0, 10.0)
    with pytest.raises(RunFolderError, match="multiples of that of Li2018's schedule") as refused:
        use(store, reference(OWN_SCHEDULE), 4.0, " Li2018's schedule failed: It took too long.")
    assert "the generator's own schedule would be. Li2018's schedule failed" in refused.value.message
    assert "longer --budget" in refused.value.next_step
