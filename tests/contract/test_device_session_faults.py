"""A real kernel timed on a board that loses files, or its connection: nothing is blamed on the schedule."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.execute.device_session import DeviceSession, ReferenceRun, Timing
from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.device_trouble import TroubleKind
from halide_autotune.devices.timing.measure_settings import KernelInputs, MeasureSettings, Tolerance
from halide_autotune.devices.timing.measurement import MeasureFailure, MeasureFailureReason, Measurement
from halide_autotune.targets.build.executable import BuildTools, Executable, link_executable
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.toolchain.zig import ZigToolchain
from tests.contract.conftest import SEARCH_PATH
from tests.fault_proxy import Direction
from tests.remote_board import RemoteBoard, SshBoard, adb_board, ssh_board
from tests.small_file_system import small_file_system
from tests.unit.targets.runner_kernels import compile_kernel

pytestmark = pytest.mark.slow

SETTINGS = MeasureSettings(warm_up_s=0.0, max_time_s=0.05)
TARGET = "x86-64-linux-sse41"


@dataclass
class Bench:
    """A device_session on a board, and the kernel that it times against itself.

    Attributes:
        folder: the board's storage is below it.
    """

    board: RemoteBoard
    device_session: DeviceSession
    executable: Executable
    folder: Path

    @property
    def sessions(self) -> list[Path]:
        """The folders on the device that hold the reference's outputs."""
        return [path.parent for path in self.folder.rglob("reference_0.raw")]

    def measure(self) -> Timing:
        kernel = self.executable.kernels[0]
        reference = ReferenceRun(self.executable, kernel, "reference_0.raw", 60.0)
        return self.device_session.measure(self.executable, kernel, SETTINGS, reference, Tolerance(), StopSignal())


@pytest.fixture(scope="module")
def executable(halide: HalideInstall, cache: ContentCache, tmp_path_factory: pytest.TempPathFactory) -> Executable:
    folder = tmp_path_factory.mktemp("kernel")
    toolchain = ZigToolchain("x86_64-linux-gnu.2.28", cache.root / "zig")
    kernels = [compile_kernel("blur_tiled", TARGET, folder)]
    return link_executable(kernels, TARGET, BuildTools(halide, cache, toolchain), folder / "batch")


@pytest.fixture(params=["ssh", "adb"])
def bench(
    request: pytest.FixtureRequest, executable: Executable, cache: ContentCache, tmp_path: Path
) -> Iterator[Bench]:
    if request.param == "ssh" and not shutil.which("sshd", path=SEARCH_PATH):
        pytest.skip("sshd is not installed")
    with ssh_board(tmp_path / "b") if request.param == "ssh" else adb_board(tmp_path / "b") as board:
        # Without canaries: how steady this machine is, is not tested here.
        device = Device("board", "ssh", "x86-64", Clock.EMULATED, 1, uses_host_cores=False, remote=board.place)
        device_session = DeviceSession(device, lambda: board.transport(cache), KernelInputs())
        yield Bench(board, device_session, executable, tmp_path)
        device_session.close()


def check_trouble(timing: Timing, kind: TroubleKind) -> None:
    failure = timing.result
    assert isinstance(failure, MeasureFailure) and failure.reason is MeasureFailureReason.DEVICE, failure
    assert failure.trouble is kind and not failure.under_way, failure


@pytest.mark.parametrize("what", ["the reference's outputs", "the whole folder"])
def test_lost_files_are_the_devices_fault_and_made_again(bench: Bench, what: str) -> None:
    assert isinstance(bench.measure().result, Measurement)
    (session,) = bench.sessions
    if what == "the whole folder":
        shutil.rmtree(session)
    else:
        (session / "reference_0.raw").unlink()
    check_trouble(bench.measure(), TroubleKind.BROKEN)
    timing = bench.measure()
    assert isinstance(timing.result, Measurement) and timing.result.output_checked
    assert bench.sessions == [session]


def test_a_link_that_drops_under_the_reference_is_looked_at_again(bench: Bench) -> None:
    bench.device_session.open()
    bench.board.proxy.drop_after(Direction.TO_SERVER, 40_000)
    first = bench.measure()
    assert isinstance(first.result, Measurement) or first.result.reason is MeasureFailureReason.DEVICE, first
    assert isinstance(bench.measure().result, Measurement)


def test_storage_that_fills_up_under_the_reference_is_freed_of_what_is_nobodys(
    bench: Bench, cache: ContentCache, tmp_path: Path
) -> None:
    if not isinstance(bench.board, SshBoard):
        pytest.skip("a phone's storage fills up in transfers only")
    with small_file_system(tmp_path / "b" / "work", megabytes=16):
        killed = bench.board.transport(cache, owner="ann@elsewhere", lease_ttl_s=0.3, slot=1)
        killed.open()
        killed._connection.end_heartbeat(1.0)
        (others,) = (tmp_path / "b" / "work").glob("s-*")
        assert isinstance(bench.measure().result, Measurement)
        (own,) = bench.sessions
        (own / "reference_0.raw").unlink()
        with contextlib.suppress(OSError), (others / "large").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(2**12))
        check_trouble(bench.measure(), TroubleKind.BROKEN)
        check_trouble(bench.measure(), TroubleKind.FULL)
        timing = bench.measure()
        assert isinstance(timing.result, Measurement) and timing.result.output_checked
        assert not others.exists() and bench.sessions == [own]
        bench.device_session.close()
