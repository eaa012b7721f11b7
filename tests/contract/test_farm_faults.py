"""What a run on a farm of real processes makes of a worker that hangs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autotune_loop.execute.farm_executor import FarmExecutor
from autotune_loop.farm.client import farm_client
from autotune_loop.farm.state import FarmState, farm_state
from autotune_loop.farm.use import DeviceWish, FarmUse
from devices.device import Clock
from sdk.settings import Settings
from tests.contract.farm_user import context_for
from tests.loopback_farm import LoopbackFarm, loopback_farm
from tests.plain_tasks import Doze

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

_LIMIT_S = 240.0


@pytest.fixture
def farm(settings: Settings, tmp_path: Path) -> Iterator[LoopbackFarm]:
    """A farm with two workers that build."""
    with loopback_farm(tmp_path / "farm", settings) as processes:
        for name in ("one", "two"):
            processes.start_worker(name, settings, build_slots=1)
        yield processes


def _use(farm: LoopbackFarm) -> FarmUse:
    return FarmUse(farm.address, DeviceWish("x86-64", (), Clock.EMULATED), user="tester@here", title="a test")


def _until(farm: LoopbackFarm, condition: Callable[[FarmState], object]) -> FarmState:
    deadline_s = time.monotonic() + _LIMIT_S
    with farm_client(farm.address) as client:
        while not condition(state := farm_state(client)):
            assert time.monotonic() < deadline_s
            time.sleep(0.1)
    return state


def test_a_worker_that_hangs_is_put_out_and_its_work_is_done_elsewhere(farm: LoopbackFarm, tmp_path: Path) -> None:
    with contextlib.closing(FarmExecutor(context_for(tmp_path), 1, _use(farm))) as executor:
        builds = [executor.submit(Doze(tmp_path / str(number), 2.0)) for number in range(4)]
        _until(farm, lambda state: all(worker.building for worker in state.workers))
        farm.workers["one"].freeze()
        assert [build.result(_LIMIT_S) for build in builds] == [2.0] * 4
        assert all((tmp_path / str(number) / "large").stat().st_size == 2**20 for number in range(4))
    state = _until(farm, lambda state: state.put_out)
    assert [worker.name for worker in state.workers] == ["two"]
    assert [out.name for out in state.put_out] == ["one"]
    assert state.put_out[0].reason == f"it does not answer at {state.put_out[0].address}"
    assert "one, because it does not answer" in farm.scheduler.wait_for("Put out: ")
    farm.workers["one"].thaw()
    assert "does not answer" in farm.workers["one"].wait_for("one was put out of the farm: ")
