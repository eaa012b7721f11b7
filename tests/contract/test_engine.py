"""What the engine promises, on this machine alone and over a farm of real processes with certificates."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from autotune_loop.candidate import Origin, SearchedSchedule, SearchPoint
from autotune_loop.execute import tasks
from autotune_loop.execute.engine import Engine
from autotune_loop.execute.timing import ReferenceRun, Timing
from autotune_loop.farm.client import farm_client
from autotune_loop.farm.state import farm_state
from autotune_loop.farm.use import DeviceWish, FarmUse
from devices.agent.program import agent_for
from devices.device import Clock, Device
from devices.device_trouble import DeviceTrouble, TroubleKind
from devices.timing.measure_settings import MeasureSettings
from devices.timing.measurement import Measurement
from sdk.settings import Settings
from targets.build.executable import Executable
from targets.errors import GeneratorError
from targets.halide_install import HalideInstall
from targets.process.content_cache import ContentCache
from tests.contract.conftest import SEARCH_PATH
from tests.contract.farm_user import context_for
from tests.loopback_farm import LoopbackFarm, loopback_farm
from tests.loopback_lab import LoopbackLab
from tests.remote_board import SshBoard, ssh_board
from weights.baseline import baseline_weights
from weights.weights_file import write_weights

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("sshd", path=SEARCH_PATH), reason="sshd is not installed"),
]

_LIMIT_S = 240.0


@dataclass(frozen=True)
class Farm:
    """A farm with one board, and one more member that builds."""

    processes: LoopbackFarm
    lab: LoopbackLab
    board: SshBoard

    def use(self) -> FarmUse:
        """A run's use of it."""
        return FarmUse(
            self.processes.address, DeviceWish("x86-64", (), Clock.EMULATED), user="tester@here", title="a test"
        )

    def start_lab(self) -> None:
        """The member with the board."""
        self.processes.start_worker("lab", self.lab.settings, self.lab.inventory)


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory, settings: Settings, cache: ContentCache) -> Iterator[Farm]:
    folder = tmp_path_factory.mktemp("farm")
    # Workers start within seconds when their program for the board is there already.
    agent_for("x86_64", cache)
    with ssh_board(folder / "board") as board, loopback_farm(folder / "processes", settings) as processes:
        made = Farm(processes, LoopbackLab(folder, [board], settings), board)
        # Its times say nothing on a machine that others use, too: nobody is to wait until it is quiet.
        made.lab.inventory.write_text(made.lab.inventory.read_text() + "emulated = true\n")
        made.start_lab()
        processes.start_worker("cores", settings, build_slots=1)
        yield made


@pytest.fixture(params=["in-process", "farm"])
def engine(request: pytest.FixtureRequest, settings: Settings, tmp_path: Path) -> Iterator[Engine]:
    """An engine with one device, `board`."""
    context = replace(context_for(tmp_path), cache_folder=settings.cache_folder, environment=settings.environment)
    use = None
    if request.param == "farm":
        use = request.getfixturevalue("farm").use()
    else:
        context = replace(context, devices=(Device("board", "local", "x86-64", Clock.WALL, 1, uses_host_cores=True),))
    with Engine(context, 1, use) as opened:
        yield opened


def test_a_schedule_is_searched_built_linked_and_timed(engine: Engine, halide: HalideInstall, tmp_path: Path) -> None:
    weights = tmp_path / "used.weights"
    write_weights(baseline_weights(halide.plugin_path("Adams2019")), weights)
    point = SearchPoint(Origin.GREEDY, 0, 1, 100, weights)
    folder = tmp_path / "run" / "0"
    found = engine.submit_build(tasks.search_and_build, point, 0, folder, "kernel").result(_LIMIT_S)
    assert isinstance(found, SearchedSchedule)
    assert found.point == point
    assert found.built is not None
    # What a member has made lies where the run wants it.
    assert {found.featurization_path.parent, found.built.object_path.parent} == {folder}
    assert found.built.schedule_path.read_text().startswith("#ifndef")
    kernels = [tasks.KernelObject("kernel", found.built.object_path)]
    linked = engine.submit_here(tasks.link, kernels, tmp_path / "run" / "batch").result(_LIMIT_S)
    assert isinstance(linked, Executable)
    run = ReferenceRun(linked, "kernel", "reference.raw", 60.0)
    quick = MeasureSettings(max_time_s=0.02)
    timing = engine.submit_measure("board", tasks.prepare_reference, "board", run, quick).result(_LIMIT_S)
    assert isinstance(timing, Timing)
    assert isinstance(timing.result, Measurement)
    again = engine.submit_measure("board", tasks.measure, "board", linked, "kernel", quick, run, tasks.Tolerance())
    timed = again.result(_LIMIT_S).result
    assert isinstance(timed, Measurement)
    assert timed.output_checked
    engine.submit_measure("board", tasks.forget, "board", linked).result(_LIMIT_S)


def test_a_failure_is_a_result_and_a_fault_an_exception(engine: Engine, tmp_path: Path) -> None:
    point = SearchPoint(Origin.GREEDY, 0, 1, 100, tmp_path / "used.weights")
    point.weights_path.write_bytes(b"")
    found = engine.submit_build(tasks.search, point, 1, tmp_path / "0").result(_LIMIT_S)
    assert isinstance(found, tasks.SearchFailure)
    assert "nonsense" in found.failure.message
    assert found.point == point
    assert not (tmp_path / "0").exists()
    with pytest.raises(ZeroDivisionError):
        engine.submit_build(divmod, 1, 0).result(_LIMIT_S)


def test_a_generator_that_does_not_travel_is_told_so(farm: Farm, tmp_path: Path) -> None:
    generator = tmp_path / "needy.py"
    generator.write_text("import beside_it\n")
    context = context_for(tmp_path)
    reference = replace(context.tasks[0].reference, file=generator)
    context = replace(context, tasks=(replace(context.tasks[0], reference=reference),))
    point = SearchPoint(Origin.GREEDY, 0, 1, 100, tmp_path / "used.weights")
    point.weights_path.write_bytes(b"")
    with Engine(context, 1, farm.use()) as engine, pytest.raises(GeneratorError) as caught:
        engine.submit_build(tasks.search, point, 0, tmp_path / "0").result(_LIMIT_S)
    assert caught.value.message == (
        "On the farm's member cores, needy.py cannot be imported: ModuleNotFoundError: No module named 'beside_it'."
        " Only a generator's own file travels to members."
    )


def test_one_at_a_time_on_a_device(engine: Engine) -> None:
    started_s = time.monotonic()
    futures = [engine.submit_measure("board", time.sleep, 0.2) for _ in range(4)]
    for future in futures:
        future.result(_LIMIT_S)
    assert time.monotonic() - started_s >= 0.8


_TOGETHER = threading.Barrier(3)


def _meet() -> int:
    return _TOGETHER.wait(timeout=_LIMIT_S)


def test_several_at_once_on_a_device_whose_clock_nothing_disturbs(settings: Settings, tmp_path: Path) -> None:
    device = Device("emulator", "qemu", "x86-64", Clock.SIMULATED, 1, uses_host_cores=True, at_once=3)
    context = replace(
        context_for(tmp_path), cache_folder=settings.cache_folder, environment=settings.environment, devices=(device,)
    )
    with Engine(context, 1) as engine:
        futures = [engine.submit_measure("emulator", _meet) for _ in range(6)]
        assert sorted(future.result(_LIMIT_S) for future in futures) == [0, 0, 1, 1, 2, 2]


def _leases(board: SshBoard) -> list[Path]:
    assert board.place.lease_folder is not None
    return [slot for slot in Path(board.place.lease_folder).glob("slot-*") if slot.read_text()]


def _until(condition: object) -> None:
    deadline_s = time.monotonic() + 180.0
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


def test_two_users_share_a_device_and_its_lease(farm: Farm, tmp_path: Path) -> None:
    with Engine(context_for(tmp_path / "a"), 1, farm.use()) as first:
        boot = first.submit_measure("board", tasks.open_device, "board").result(_LIMIT_S)
        with Engine(context_for(tmp_path / "b"), 1, farm.use()) as second:
            assert second.submit_measure("board", tasks.open_device, "board").result(_LIMIT_S) == boot
            with farm_client(farm.processes.address) as client:
                _until(lambda: len(farm_state(client).devices[0].users) == 2)
                state = farm_state(client)
            assert [run.user for run in state.runs] == ["tester@here", "tester@here"]
            assert {member.name for member in state.members} == {"lab", "cores"}
        assert len(_leases(farm.board)) == 1
        assert first.submit_measure("board", tasks.open_device, "board").result(_LIMIT_S) == boot


def test_the_devices_of_a_killed_user_are_given_back(farm: Farm, tmp_path: Path) -> None:
    arguments = [farm.processes.url, str(farm.processes.user_folder), "board", str(tmp_path)]
    command = [sys.executable, "-m", "tests.contract.farm_user", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as user:
        assert user.stdout is not None
        assert user.stdout.readline() == "open\n"
        assert len(_leases(farm.board)) == 1
        user.kill()
    _until(lambda: not _leases(farm.board))


def test_a_killed_member_takes_its_lease_back(farm: Farm, tmp_path: Path) -> None:
    with Engine(context_for(tmp_path), 1, farm.use()) as engine:
        boot = engine.submit_measure("board", tasks.open_device, "board").result(_LIMIT_S)
        under_way = engine.submit_measure("board", time.sleep, 60)
        time.sleep(0.5)
        engine.arrivals()
        farm.processes.workers["lab"].kill()
        with pytest.raises(DeviceTrouble, match="serves board is gone") as caught:
            under_way.result(_LIMIT_S)
        assert caught.value.kind is TroubleKind.LOST
        _until(lambda: not _is_there(engine))
        with pytest.raises(DeviceTrouble):
            engine.submit_measure("board", tasks.open_device, "board").result(_LIMIT_S)
        assert len(_leases(farm.board)) == 1, "the dead member's"
        farm.start_lab()
        arrived: list[str] = []
        _until(lambda: arrived.extend(engine.arrivals()) or arrived)
        assert arrived == ["board"]
        assert engine.submit_measure("board", tasks.open_device, "board").result(_LIMIT_S) == boot


def _is_there(engine: Engine) -> bool:
    """Whether the engine still takes the board for one that a member serves."""
    future = engine.submit_measure("board", time.monotonic)
    with contextlib.suppress(DeviceTrouble):
        future.result(_LIMIT_S)
        return True
    return False


def test_a_scheduler_that_is_started_again_is_found_again(farm: Farm, tmp_path: Path) -> None:
    with Engine(context_for(tmp_path), 1, farm.use()) as engine:
        boot = engine.submit_measure("board", tasks.open_device, "board").result(_LIMIT_S)
        timed = engine.submit_measure("board", time.sleep, 60)
        built = engine.submit_build(abs, -1)
        farm.processes.scheduler.kill()
        with pytest.raises(DeviceTrouble):
            timed.result(_LIMIT_S)
        farm.processes.start_scheduler()
        # A build waits for the scheduler; a measurement is for who measures to ask for again.
        assert built.result(_LIMIT_S) == 1
        assert engine.submit_build(abs, -2).result(_LIMIT_S) == 2

        def opened() -> bool:
            with contextlib.suppress(DeviceTrouble):
                return engine.submit_measure("board", tasks.open_device, "board").result(_LIMIT_S) == boot
            return False

        _until(opened)
