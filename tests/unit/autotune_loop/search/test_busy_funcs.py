"""Looking where the fastest schedule's time goes: when it is worth it, and what becomes of it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from halide_autotune.autotune_loop.candidate import BuiltObject
from halide_autotune.autotune_loop.execute.tasks.build_tasks import Link
from halide_autotune.autotune_loop.execute.tasks.measure_tasks import TimeFuncs
from halide_autotune.autotune_loop.execute.tasks.schedule_tasks import BuildSchedule
from halide_autotune.autotune_loop.execute.tasks.task import Task
from halide_autotune.autotune_loop.search import busy_funcs
from halide_autotune.autotune_loop.search.busy_funcs import BusyFuncs, can_be_asked
from halide_autotune.autotune_loop.search.known.run_populations import TimedSchedule
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.autotune_loop.technique_name import TechniqueName
from halide_autotune.devices.device import Clock
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.timing.func_times import FuncTime, FuncTimes
from halide_autotune.targets.build.executable import Executable
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.run import GeneratorFailure, GeneratorFailureReason
from tests.contract.writing_process import RECORD
from tests.fake_time import FakeTime
from tests.scripted_executor import ScriptedExecutor

EXECUTABLE = Executable(Path("profiled_0"), ("a",), "0" * 64)
TIMES = FuncTimes("a", "pi", 0.5, 400, (FuncTime("blur", 0.375, 2.0, 0, 0), FuncTime("out", 0.125, 2.0, 0, 0)))
SHARES = {"blur": 0.75, "out": 0.25}
FAILED = GeneratorFailure(GeneratorFailureReason.CRASHED, "It does not compile.", "", 0.5)
LOST = DeviceTrouble(TroubleKind.LOST, "pi is lost.")


def timed(**times_ms: float) -> list[TimedSchedule]:
    """These, and some slower ones."""
    others = {"x": 7.0, "y": 8.0, "z": 9.0}
    return [TimedSchedule(symbol, f"batch_0_0/{symbol}", ms) for symbol, ms in {**times_ms, **others}.items()]


def answer(task: Task[Any]) -> object:
    if isinstance(task, BuildSchedule):
        assert task.features == ("profile",)
        return BuiltObject(task.symbol, task.output_folder / "a.o", None, 0.5)
    return EXECUTABLE if isinstance(task, Link) else TIMES


@dataclass
class Setting:
    """What looks, and what it has asked for; `script` answers."""

    busy: BusyFuncs
    asked: list[Task[Any]]
    script: Callable[[Task[Any]], object] = answer
    takes_s: float = 0.0

    @property
    def shares(self) -> dict[str, dict[str, float]]:
        return self.busy.store.database.func_shares()


@pytest.fixture
def setting(tmp_path: Path, now: FakeTime, monkeypatch: pytest.MonkeyPatch) -> Iterator[Setting]:
    monkeypatch.setattr(busy_funcs, "time", now)
    store = RunStore(tmp_path / "run", RECORD, resume=False)

    def told(task: Task[Any]) -> object:
        made.asked.append(task)
        now.now_s += made.takes_s
        result = made.script(task)
        if isinstance(result, Exception):
            raise result
        return result

    context = SimpleNamespace(workspace=SimpleNamespace(work_folder=store.work), limits=SimpleNamespace(search_s=20.0))
    proposals = SimpleNamespace(
        techniques=lambda task_index: (*TechniqueName,), schedule_json=lambda sample: f"the schedule of {sample}"
    )
    with contextlib.closing(store), contextlib.closing(ScriptedExecutor(told)) as executor:
        made = Setting(BusyFuncs(executor, store, cast(Any, context), cast(Any, proposals), lambda: False), asked=[])
        yield made


def look(setting: Setting, timed: list[TimedSchedule], device: str | None) -> None:
    with setting.busy.looking(0, timed, device):
        pass


def test_the_fastest_is_built_for_the_profiler_and_asked(setting: Setting) -> None:
    look(setting, timed(b=2.0, a=1.0, c=3.0), "pi")
    assert setting.shares == {"a": SHARES}
    build, link, ask = setting.asked
    assert isinstance(build, BuildSchedule) and build.schedule_json == "the schedule of batch_0_0/a"
    assert isinstance(link, Link) and [kernel.name for kernel in link.kernels] == ["a"]
    assert isinstance(ask, TimeFuncs) and (ask.device_name, ask.symbol, ask.executable) == ("pi", "a", EXECUTABLE)


def test_it_is_asked_again_once_it_is_much_faster(setting: Setting) -> None:
    look(setting, timed(a=1.0), "pi")
    look(setting, timed(a=1.0, b=0.96), "pi")
    assert [*setting.shares] == ["a"]
    look(setting, timed(a=1.0, b=0.96, c=0.94), "pi")
    assert [*setting.shares] == ["a", "c"]


@pytest.mark.parametrize("failure", [FAILED, GeneratorError("It cannot be read."), LOST, None])
def test_one_that_cannot_be_asked_is_not_asked_again(setting: Setting, failure: object) -> None:
    setting.script = lambda task: failure if isinstance(task, BuildSchedule) == (failure is FAILED) else answer(task)
    look(setting, timed(a=1.0), "pi")
    asked = len(setting.asked)
    look(setting, timed(a=1.0), "pi")
    assert setting.shares == {"a": {}} and len(setting.asked) == asked


def test_it_takes_a_small_share_of_the_time(setting: Setting, now: FakeTime) -> None:
    setting.takes_s = 2.0
    for step in range(1, 1001):
        now.now_s += 1.0
        look(setting, timed(**{f"s{step}": 0.9**step}), "pi")
    assert 3 <= len(setting.shares) <= 8, "6 s each, of 1,000 s"


def test_what_is_done_meanwhile_does_not_wait(setting: Setting) -> None:
    is_done = threading.Event()
    setting.script = lambda task: answer(task) if is_done.wait(10) else FAILED
    with setting.busy.looking(0, timed(a=1.0), "pi"):
        assert setting.shares == {}
        is_done.set()
    assert setting.shares == {"a": SHARES}


def test_nothing_is_asked_for_where_nothing_would_use_it(setting: Setting) -> None:
    look(setting, timed(), "pi")
    look(setting, timed(a=1.0), None)
    techniques = (TechniqueName.SAMPLING, TechniqueName.SKETCHES)
    setting.busy.proposals = cast(Any, SimpleNamespace(techniques=lambda task_index: techniques))
    look(setting, timed(a=1.0), "pi")
    assert setting.asked == []


def test_the_profiler_knows_real_processors_only() -> None:
    context = cast(Any, SimpleNamespace(profile=SimpleNamespace(machine=SimpleNamespace(gpu=None))))
    card = cast(Any, SimpleNamespace(profile=SimpleNamespace(machine=SimpleNamespace(gpu=object()))))
    assert can_be_asked(Clock.WALL, context) and not can_be_asked(Clock.WALL, card)
    assert not any(can_be_asked(clock, context) for clock in Clock if clock is not Clock.WALL)
