"""What a run on a farm of real processes makes of a worker that hangs, and of a scheduler that dies or hangs."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from distributed import Client

from halide_autotune.autotune_loop.events import Event, Notice
from halide_autotune.autotune_loop.execute.farm_executor import FarmExecutor
from halide_autotune.autotune_loop.farm.client import farm_client
from halide_autotune.autotune_loop.farm.state import FarmState, farm_state
from halide_autotune.autotune_loop.farm.use import DeviceWish, FarmUse
from halide_autotune.devices.device import Clock
from halide_autotune.sdk.settings import Settings
from tests.contract.farm_user import context_for
from tests.loopback_farm import LoopbackFarm, loopback_farm
from tests.plain_tasks import Doze

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

_LIMIT_S = 240.0


@pytest.fixture
def farm(settings: Settings, tmp_path: Path) -> Iterator[LoopbackFarm]:
    """A farm with two workers that build."""
    with loopback_farm(tmp_path / "farm", settings) as processes:
        for name in ("build1", "build2"):
            processes.start_worker(name, settings, build_slots=1)
        yield processes


def _use(farm: LoopbackFarm) -> FarmUse:
    return FarmUse(farm.address, DeviceWish("x86-64", (), Clock.EMULATED), user="tester@here", title="a test")


def _until(condition: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + _LIMIT_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


def _state_with(client: Client, condition: Callable[[FarmState], object]) -> FarmState:
    _until(lambda: condition(farm_state(client)))
    return farm_state(client)


def test_a_worker_that_hangs_is_put_out_and_its_work_is_done_elsewhere(farm: LoopbackFarm, tmp_path: Path) -> None:
    with (
        contextlib.closing(FarmExecutor(context_for(tmp_path), 1, _use(farm))) as executor,
        farm_client(farm.address) as client,
    ):
        builds = [executor.submit(Doze(tmp_path / str(number), 5.0)) for number in range(4)]
        _state_with(client, lambda state: all(worker.building for worker in state.workers))
        farm.workers["build1"].freeze()
        assert os.getpid() not in [build.result(_LIMIT_S) for build in builds]
        assert all((tmp_path / str(number) / "large").stat().st_size == 2**20 for number in range(4))
    with farm_client(farm.address) as client:
        state = _state_with(client, lambda state: state.put_out)
    assert [worker.name for worker in state.workers] == ["build2"]
    assert [out.name for out in state.put_out] == ["build1"]
    assert state.put_out[0].reason == f"it does not answer at {state.put_out[0].address}"
    assert "build1, because it does not answer" in farm.scheduler.wait_for("Put out: ")
    farm.workers["build1"].thaw()
    assert "does not answer" in farm.workers["build1"].wait_for("build1 was put out of the farm: ")


def _dies(farm: LoopbackFarm) -> Callable[[], None]:
    """Returns what brings the scheduler back."""
    farm.scheduler.kill()
    return farm.start_scheduler


def _hangs(farm: LoopbackFarm) -> Callable[[], None]:
    """As a machine that sleeps: its connections stay."""
    farm.scheduler.freeze()
    return farm.scheduler.thaw


@pytest.mark.parametrize("goes_away", [_dies, _hangs])
def test_while_the_scheduler_is_away_builds_are_done_here(
    farm: LoopbackFarm, tmp_path: Path, goes_away: Callable[[LoopbackFarm], Callable[[], None]]
) -> None:
    events: list[Event] = []

    def told(text: str) -> bool:
        return any(text in event.text for event in list(events) if isinstance(event, Notice))

    def build(name: str, time_s: float) -> Doze:
        return Doze(tmp_path / name, time_s)

    here = os.getpid()
    with contextlib.closing(FarmExecutor(context_for(tmp_path), 1, _use(farm), events.append)) as executor:
        assert executor.submit(build("there", 0.0)).result(_LIMIT_S) != here
        with farm_client(farm.address) as client:
            under_way = executor.submit(build("under way", 20.0))
            _state_with(client, lambda state: any(worker.building for worker in state.workers))
        comes_back = goes_away(farm)
        _until(lambda: told("does not answer. It is looked for"))
        assert not told("answers again")
        later = executor.submit(build("later", 0.0))
        assert under_way.result(_LIMIT_S) == later.result(_LIMIT_S) == here
        assert {path.parent.name for path in tmp_path.glob("*/large")} == {"there", "under way", "later"}
        comes_back()
        _until(lambda: told("answers again"))
        # Both workers are with the new scheduler, and builds are theirs again.
        _until(lambda: executor.build_slots == 2 and executor.submit(build("again", 0.0)).result(_LIMIT_S) != here)
        with farm_client(farm.address) as client:
            assert {row.run.user for row in _state_with(client, lambda state: state.runs).runs} == {"tester@here"}
