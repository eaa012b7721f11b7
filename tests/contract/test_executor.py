"""What an executor promises: in this process, on a farm of real processes with certificates, and by a script."""

from __future__ import annotations

import contextlib
import gc
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.candidate import Origin, SearchedSchedule, SearchFailure, SearchPoint
from halide_autotune.autotune_loop.execute.device_session import ReferenceRun, Timing
from halide_autotune.autotune_loop.execute.executor import Executor
from halide_autotune.autotune_loop.execute.farm_executor import FarmExecutor
from halide_autotune.autotune_loop.execute.local_executor import LocalExecutor
from halide_autotune.autotune_loop.execute.tasks.build_tasks import Link, Search
from halide_autotune.autotune_loop.execute.tasks.measure_tasks import Forget, Measure, OpenDevice, PrepareReference
from halide_autotune.autotune_loop.farm.client import farm_client
from halide_autotune.autotune_loop.farm.state import farm_state
from halide_autotune.autotune_loop.farm.use import DeviceWish, FarmUse
from halide_autotune.devices.agent.program import agent_for
from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.timing.measure_settings import MeasureSettings, Tolerance
from halide_autotune.devices.timing.measurement import Measurement
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.build.executable import Executable, KernelObject
from halide_autotune.targets.errors import FarmError, GeneratorError
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.weights.baseline import baseline_weights
from halide_autotune.weights.weights_file import write_weights
from tests.contract.conftest import SEARCH_PATH
from tests.contract.farm_user import context_for
from tests.loopback_farm import LoopbackFarm, loopback_farm
from tests.loopback_lab import LoopbackLab
from tests.plain_tasks import Divide, Meet, Nap
from tests.remote_board import SshBoard, ssh_board
from tests.scripted_executor import ScriptedExecutor

pytestmark = [
    pytest.mark.toolchain,
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("sshd", path=SEARCH_PATH), reason="sshd is not installed"),
]

_LIMIT_S = 240.0


@dataclass(frozen=True)
class Farm:
    """A farm with one board, and one more worker that builds."""

    processes: LoopbackFarm
    lab: LoopbackLab
    board: SshBoard

    def use(self) -> FarmUse:
        """A run's use of it."""
        return FarmUse(
            self.processes.address, DeviceWish("x86-64", (), Clock.EMULATED), user="tester@here", title="a test"
        )

    def start_lab(self) -> None:
        """The worker with the board."""
        self.processes.start_worker("boards", self.lab.settings, self.lab.inventory)


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


@contextlib.contextmanager
def farm_executor(folder: Path, farm: Farm) -> Iterator[FarmExecutor]:
    """An executor of a user of the farm."""
    with contextlib.closing(FarmExecutor(context_for(folder), 1, farm.use())) as opened:
        yield opened


def _opened(kind: str, request: pytest.FixtureRequest, settings: Settings, folder: Path) -> Executor:
    if kind == "scripted":
        return ScriptedExecutor()
    context = context_for(folder)
    here = replace(context.workspace, cache_folder=settings.cache_folder, environment=settings.environment)
    context = replace(context, workspace=here)
    if kind == "farm":
        return FarmExecutor(context, 1, request.getfixturevalue("farm").use())
    board = Device("board", "local", "x86-64", Clock.WALL, 1, uses_host_cores=True)
    return LocalExecutor(replace(context, devices=(board,)), 1)


@pytest.fixture(params=["in-process", "farm", "scripted"])
def executor(request: pytest.FixtureRequest, settings: Settings, tmp_path: Path) -> Iterator[Executor]:
    """An executor with one device, `board`."""
    with contextlib.closing(_opened(request.param, request, settings, tmp_path)) as opened:
        yield opened


@pytest.fixture(params=["in-process", "farm"])
def working(request: pytest.FixtureRequest, settings: Settings, tmp_path: Path) -> Iterator[Executor]:
    """One that does real work."""
    with contextlib.closing(_opened(request.param, request, settings, tmp_path)) as opened:
        yield opened


def test_a_schedule_is_searched_built_linked_and_timed(
    working: Executor, halide: HalideInstall, tmp_path: Path
) -> None:
    weights = tmp_path / "used.weights"
    write_weights(baseline_weights(halide.plugin_path("Adams2019")), weights)
    point = SearchPoint(Origin.GREEDY, 0, 1, 100, weights)
    folder = tmp_path / "run" / "0"
    found = working.submit(Search(folder, 0, point, "kernel")).result(_LIMIT_S)
    assert isinstance(found, SearchedSchedule)
    assert found.point == point
    assert found.built is not None and found.built.schedule_path is not None
    # What a worker has made lies where the run wants it.
    assert {found.featurization_path.parent, found.built.object_path.parent} == {folder}
    assert found.built.schedule_path.read_text().startswith("#ifndef")
    kernels = (KernelObject("kernel", found.built.object_path),)
    linked = working.submit(Link(tmp_path / "run", "batch", kernels)).result(_LIMIT_S)
    assert isinstance(linked, Executable)
    run = ReferenceRun(linked, "kernel", "reference.raw", 60.0)
    quick = MeasureSettings(max_time_s=0.02)
    timing = working.submit(PrepareReference("board", run, quick)).result(_LIMIT_S)
    assert isinstance(timing, Timing)
    assert isinstance(timing.result, Measurement)
    timed = working.submit(Measure("board", linked, "kernel", quick, run, Tolerance())).result(_LIMIT_S).result
    assert isinstance(timed, Measurement)
    assert timed.output_checked
    working.submit(Forget("board", "batch", linked.sha256)).result(_LIMIT_S)


def test_a_search_tells_its_schedule_without_code(working: Executor, halide: HalideInstall, tmp_path: Path) -> None:
    weights = tmp_path / "used.weights"
    write_weights(baseline_weights(halide.plugin_path("Adams2019")), weights)
    point = SearchPoint(Origin.GREEDY, 0, 1, 100, weights)
    asked = [Search(tmp_path / "run" / str(told), 0, point, tells_schedule=told) for told in (False, True)]
    silent, told = (working.submit(search).result(_LIMIT_S) for search in asked)
    assert isinstance(silent, SearchedSchedule) and isinstance(told, SearchedSchedule)
    assert silent.schedule_path is None and told.built is None and told.schedule_path is not None
    assert told.schedule_path.parent == tmp_path / "run" / "True"
    assert told.schedule_path.read_text().startswith("#ifndef")
    assert told.schedule_sha256 == silent.schedule_sha256, "the same schedule"


def test_a_failure_is_a_result(working: Executor, tmp_path: Path) -> None:
    point = SearchPoint(Origin.GREEDY, 0, 1, 100, tmp_path / "used.weights")
    point.weights_path.write_bytes(b"")
    found = working.submit(Search(tmp_path / "0", 1, point)).result(_LIMIT_S)
    assert isinstance(found, SearchFailure)
    assert "nonsense" in found.failure.message
    assert found.point == point
    assert not (tmp_path / "0").exists()


def test_a_fault_is_an_exception(executor: Executor, tmp_path: Path) -> None:
    assert executor.submit(Divide(tmp_path, 7, 2)).result(_LIMIT_S) == 3
    with pytest.raises(ZeroDivisionError):
        executor.submit(Divide(tmp_path, 1, 0)).result(_LIMIT_S)


def test_an_executor_has_slots_and_no_news(executor: Executor) -> None:
    assert executor.build_slots >= 1
    executor.arrivals()
    assert executor.arrivals() == []
    executor.interrupt()
    assert executor.submit(Nap("board", 0.01)).result(_LIMIT_S) == 0.01, "what comes later is not interrupted"


def test_what_has_not_begun_when_the_run_ends_fails(executor: Executor) -> None:
    executor.submit(Nap("board", 0.0)).result(_LIMIT_S)
    under_way = [executor.submit(Nap("board", 2.0)) for _ in range(3)]
    executor.close()
    with pytest.raises(FarmError, match="The run has ended"):
        under_way[-1].result(_LIMIT_S)


def test_what_nobody_waits_for_any_more_ends_without_a_word(
    executor: Executor, caplog: pytest.LogCaptureFixture
) -> None:
    executor.submit(Nap("board", 0.0)).result(_LIMIT_S)
    for given_up in [executor.submit(Nap("board", 0.5)) for _ in range(3)]:
        given_up.cancel()
    executor.close()
    gc.collect()
    assert [record.message for record in caplog.records if record.name == "asyncio"] == []


def test_a_generator_that_does_not_travel_is_told_so(farm: Farm, tmp_path: Path) -> None:
    generator = tmp_path / "needy.py"
    generator.write_text("import beside_it\n")
    context = context_for(tmp_path)
    reference = replace(context.tasks[0].reference, file=generator)
    spec = replace(context.spec, tasks=(replace(context.tasks[0], reference=reference),))
    context = replace(context, spec=spec)
    point = SearchPoint(Origin.GREEDY, 0, 1, 100, tmp_path / "used.weights")
    point.weights_path.write_bytes(b"")
    with (
        contextlib.closing(FarmExecutor(context, 1, farm.use())) as executor,
        pytest.raises(GeneratorError) as caught,
    ):
        executor.submit(Search(tmp_path / "0", 0, point)).result(_LIMIT_S)
    assert caught.value.message == (
        "On the farm's worker cores, needy.py cannot be imported: ModuleNotFoundError: No module named 'beside_it'."
        " Workers are sent the generator's sources and headers, the Python modules beside it, and what --data names."
    )
    assert "--scheduler none" in caught.value.next_step


def test_one_at_a_time_on_a_device(executor: Executor) -> None:
    started_s = time.monotonic()
    futures = [executor.submit(Nap("board", 0.2)) for _ in range(4)]
    for future in futures:
        future.result(_LIMIT_S)
    assert time.monotonic() - started_s >= 0.8


def test_several_at_once_on_a_device_whose_clock_nothing_disturbs(settings: Settings, tmp_path: Path) -> None:
    device = Device("emulator", "qemu", "x86-64", Clock.SIMULATED, 1, uses_host_cores=True, at_once=3)
    context = context_for(tmp_path, (device,))
    here = replace(context.workspace, cache_folder=settings.cache_folder, environment=settings.environment)
    context = replace(context, workspace=here)
    with contextlib.closing(LocalExecutor(context, 1)) as executor:
        futures = [executor.submit(Meet("emulator")) for _ in range(6)]
        assert sorted(future.result(_LIMIT_S) for future in futures) == [0, 0, 1, 1, 2, 2]


def _leases(board: SshBoard) -> list[Path]:
    assert board.place.lease_folder is not None
    return [slot for slot in Path(board.place.lease_folder).glob("slot-*") if slot.read_text()]


def _until(condition: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + 180.0
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


def test_two_users_share_a_device_and_its_lease(farm: Farm, tmp_path: Path) -> None:
    with farm_executor(tmp_path / "a", farm) as first:
        boot = first.submit(OpenDevice("board")).result(_LIMIT_S)
        with farm_executor(tmp_path / "b", farm) as second:
            assert second.submit(OpenDevice("board")).result(_LIMIT_S) == boot
            with farm_client(farm.processes.address) as client:
                _until(lambda: len(farm_state(client).devices[0].report.users) == 2)
                state = farm_state(client)
            assert [row.run.user for row in state.runs] == ["tester@here", "tester@here"]
            assert {worker.name for worker in state.workers} == {"boards", "cores"}
        assert len(_leases(farm.board)) == 1
        assert first.submit(OpenDevice("board")).result(_LIMIT_S) == boot


def test_the_devices_of_a_killed_user_are_given_back(farm: Farm, tmp_path: Path) -> None:
    arguments = [farm.processes.url, str(farm.processes.user_folder), "board", str(tmp_path)]
    command = [sys.executable, "-m", "tests.contract.farm_user", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as user:
        assert user.stdout is not None
        assert user.stdout.readline() == "open\n"
        assert len(_leases(farm.board)) == 1
        user.kill()
    _until(lambda: not _leases(farm.board))


def test_a_killed_worker_takes_its_lease_back(farm: Farm, tmp_path: Path) -> None:
    with farm_executor(tmp_path, farm) as executor:
        boot = executor.submit(OpenDevice("board")).result(_LIMIT_S)
        under_way = executor.submit(Nap("board", 60.0))
        time.sleep(0.5)
        executor.arrivals()
        farm.processes.workers["boards"].kill()
        with pytest.raises(DeviceTrouble, match="serves board is gone") as caught:
            under_way.result(_LIMIT_S)
        assert caught.value.kind is TroubleKind.LOST
        _until(lambda: not _is_there(executor))
        with pytest.raises(DeviceTrouble):
            executor.submit(OpenDevice("board")).result(_LIMIT_S)
        assert len(_leases(farm.board)) == 1, "the dead worker's"
        farm.start_lab()
        arrived: list[str] = []

        def came() -> list[str]:
            arrived.extend(executor.arrivals())
            return arrived

        _until(came)
        assert arrived == ["board"]
        assert executor.submit(OpenDevice("board")).result(_LIMIT_S) == boot


def _is_there(executor: Executor) -> bool:
    """Whether the executor still takes the board for one that a worker serves."""
    future = executor.submit(Nap("board", 0.0))
    with contextlib.suppress(DeviceTrouble):
        future.result(_LIMIT_S)
        return True
    return False


def test_a_scheduler_that_is_started_again_is_found_again(farm: Farm, tmp_path: Path) -> None:
    with farm_executor(tmp_path, farm) as executor:
        boot = executor.submit(OpenDevice("board")).result(_LIMIT_S)
        timed = executor.submit(Nap("board", 60.0))
        built = executor.submit(Divide(tmp_path, 1, 1))
        farm.processes.scheduler.kill()
        with pytest.raises(DeviceTrouble):
            timed.result(_LIMIT_S)
        farm.processes.start_scheduler()
        # A build waits for the scheduler; a measurement is for who measures to ask for again.
        assert built.result(_LIMIT_S) == 1
        assert executor.submit(Divide(tmp_path, 2, 1)).result(_LIMIT_S) == 2

        def opened() -> bool:
            with contextlib.suppress(DeviceTrouble):
                return executor.submit(OpenDevice("board")).result(_LIMIT_S) == boot
            return False

        _until(opened)
