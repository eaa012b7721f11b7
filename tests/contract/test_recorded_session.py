"""A session with the agent and a runner, recorded and spoiled: what comes of it is sane, or a typed error."""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.execute.device_session import DeviceSession, ReferenceRun, Timing
from halide_autotune.devices.agent.program import AgentProgram, agent_for
from halide_autotune.devices.agent.session import AgentSession
from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.device_link import DeviceLink
from halide_autotune.devices.health.canary import time_canary
from halide_autotune.devices.health.probe import DeviceProbe, DeviceSense, probe_device
from halide_autotune.devices.lease.lease import SlotLease, show_leases
from halide_autotune.devices.remote import transport as transport_module
from halide_autotune.devices.remote.session_files import _Look
from halide_autotune.devices.remote.shared_connection import shared_connection
from halide_autotune.devices.remote.transport import AgentTransport, OpenedDevice, _run_outcome, _RunResult
from halide_autotune.devices.remote_place import RemotePlace, SshAddress
from halide_autotune.devices.timing.machine_signs import Surroundings
from halide_autotune.devices.timing.measure import Session, measure_kernel
from halide_autotune.devices.timing.measure_settings import KernelInputs, MeasureSettings, Tolerance
from halide_autotune.devices.timing.measurement import Measurement
from halide_autotune.targets.build.executable import BuildTools, Executable, link_executable
from halide_autotune.targets.errors import SdkError
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.toolchain.zig import ZigToolchain
from tests.any_speed import any_speed_is_usual
from tests.recorded_session import Recording, RecordingLink, ReplayLink, spoiled_bytes
from tests.unit.devices.timing.test_measure import ScriptedTransport, check_sane
from tests.unit.targets.runner_kernels import compile_kernel

pytestmark = pytest.mark.slow

REPLIES, SESSIONS = 100_000, 1_000
SETTINGS = MeasureSettings(warm_up_s=0.0, max_time_s=0.02, max_repetitions=5)
TARGET = "x86-64-linux-sse41"
DEVICE = Device(
    "board",
    "ssh",
    "x86-64",
    Clock.WALL,
    1,
    uses_host_cores=False,
    remote=RemotePlace(SshAddress("board"), folder="work", lease_folder="leases", performance_mode=False),
)


@pytest.fixture(scope="module")
def executable(halide: HalideInstall, cache: ContentCache, tmp_path_factory: pytest.TempPathFactory) -> Executable:
    folder = tmp_path_factory.mktemp("kernel")
    toolchain = ZigToolchain("x86_64-linux-gnu.2.28", cache.root / "zig")
    kernels = [compile_kernel("blur_tiled", TARGET, folder)]
    return link_executable(kernels, TARGET, BuildTools(halide, cache, toolchain), folder / "batch")


@pytest.fixture(scope="module")
def recording(executable: Executable, cache: ContentCache, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    link = RecordingLink(tmp_path_factory.mktemp("board"))
    with any_speed_is_usual():
        told = list(use(link, partial(agent_for, cache=cache), executable, tmp_path_factory.mktemp("run")))
    assert not [each for each in told if isinstance(each, SdkError)]
    assert sum(isinstance(each, Timing) and isinstance(each.result, Measurement) for each in told) == 1
    return link.recording


def use(
    link: DeviceLink, agent: Callable[[str], AgentProgram], executable: Executable, run_folder: Path
) -> Iterator[object]:
    """Do with a device what a run does; gives what it tells, or the error."""
    connection = shared_connection(link, DEVICE, agent, "tester@here")
    transports: list[AgentTransport] = []

    def open_transport() -> AgentTransport:
        transports.append(AgentTransport(connection, DEVICE))
        return transports[-1]

    session = DeviceSession(DEVICE, open_transport, KernelInputs())
    kernel = executable.kernels[0]
    reference = ReferenceRun(executable, kernel, "reference_0.raw", 60.0)
    steps: list[Callable[[], object]] = [
        session.open,
        session.sense,
        lambda: session.look_around(executable, StopSignal()),
        lambda: session.measure(executable, kernel, SETTINGS, reference, Tolerance(), StopSignal()),
        lambda: transports[-1].pull("reference_0.raw", run_folder / "pulled"),
        lambda: probe_device(connection.session),
        lambda: show_leases(connection.session, transports[-1]._place),
        lambda: session.forget(executable.path.name, executable.sha256),
        session.close,
    ]
    for step in steps:
        try:
            yield step()
        except SdkError as error:
            yield error


def check(told: object) -> None:
    """It can be stored and shown."""
    if isinstance(told, Timing):
        check_sane(told.result)
    elif isinstance(told, SdkError):
        assert str(told).isprintable() and len(str(told)) < 3000, str(told)
    elif isinstance(told, float):
        assert 1e-9 <= told <= 1e6
    elif isinstance(told, DeviceProbe | DeviceSense | Surroundings | OpenedDevice | _Look):
        json.dumps(asdict(told), allow_nan=False, ensure_ascii=False).encode()
    elif isinstance(told, tuple):
        assert all(isinstance(one, SlotLease) and one.owner.isprintable() for one in told)
    else:
        assert told is None or isinstance(told, AgentTransport)


class WrittenFiles:
    """The files that this process opens for writing while it is watched."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.watches = False
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.watches and event == "open" and isinstance(arguments[0], str | bytes):
            mode, flags = arguments[1], arguments[2]
            if (isinstance(mode, str) and set(mode) & set("wax+")) or (isinstance(flags, int) and flags & 3):
                self.paths.add(os.fsdecode(arguments[0]))


def test_a_spoiled_session_ends_in_results_and_errors_that_can_be_shown(
    recording: Recording, executable: Executable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport_module, "_BACK_OFF_S", (0.0,))
    run_folder = tmp_path / "run"
    (run_folder / "temporary").mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(run_folder / "temporary"))
    written = WrittenFiles()
    kinds: Counter[str] = Counter()
    for seed in range(SESSIONS):
        source = random.Random(seed)
        spoilt = source.randrange(len(recording.streams) + len(recording.files))
        left = iter(range(spoilt + 1))

        def spoil(said: bytes, source: random.Random = source, left: Iterator[int] = left, last: int = spoilt) -> bytes:
            return spoiled_bytes(source, said) if next(left, None) == last else said

        link = ReplayLink(recording, spoil)
        written.watches = True
        try:
            for told in use(link, lambda machine: AgentProgram(executable.path, "ab" * 32), executable, run_folder):
                check(told)
                kinds[type(told).__name__] += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
        finally:
            written.watches = False
    assert kinds["Timing"] == SESSIONS and kinds["DeviceTrouble"] > SESSIONS / 4, kinds
    outside = {path for path in written.paths if not Path(path).is_relative_to(run_folder) and path != os.devnull}
    assert not outside
    assert {path.name for path in run_folder.iterdir()} <= {"pulled", "temporary"}
    assert not list((run_folder / "temporary").iterdir())


def read_alone(command: str, said: bytes) -> object:
    """One answer of the agent, as it is read in a session."""
    session = AgentSession(ReplayLink(Recording([(command, said)]), lambda data: data), DEVICE, _no_program)
    session.connected, session._program = True, AgentProgram(Path(__file__), "ab" * 32)
    if command == "run":
        reply = session.call(command, [])
        assert reply is not None
        outcome = _run_outcome(reply, session.read(_RunResult, command, reply.fields))
        transport = ScriptedTransport(outcome)
        return Timing(
            measure_kernel(Session(DEVICE, transport, KernelInputs(), Tolerance()), "batch", "f", SETTINGS, "r.raw"),
            outcome.duration_s,
        )
    readers: dict[str, Callable[[], object]] = {
        "open": lambda: session.ask_for(OpenedDevice, command, []),
        "hash": lambda: session.ask_for(_Look, command, []),
        "lease-show": lambda: show_leases(session, RemotePlace(SshAddress("board"))),
        "probe": lambda: probe_device(session),
        "sense": lambda: session.ask_for(DeviceSense, command, []),
        "canary": lambda: time_canary(session, ()),
    }
    if command in readers:
        return readers[command]()
    session.ask(command, [])  # only whether it succeeds counts
    return None


def answer_or_error(command: str, said: bytes) -> object:
    try:
        return read_alone(command, said)
    except SdkError as error:
        return error


def _no_program(machine: str) -> AgentProgram:
    raise AssertionError("the agent is there")


def test_a_spoiled_answer_is_read_as_a_result_or_an_error(recording: Recording) -> None:
    answers = [(command, said) for command, said in recording.streams if said.startswith(b"@")]
    assert {"open", "hash", "run", "sense", "canary", "probe", "lease-show", "lease-release"} <= dict(answers).keys()
    kinds: Counter[str] = Counter()
    for seed in range(REPLIES):
        source = random.Random(seed)
        command, said = source.choice(answers)
        try:
            told = answer_or_error(command, spoiled_bytes(source, said))
            check(told)
        except Exception as error:
            raise AssertionError(f"seed {seed}, {command}") from error
        kinds[type(told.result if isinstance(told, Timing) else told).__name__] += 1
    expected = ("DeviceProbe", "DeviceTrouble", "MeasureFailure", "Measurement", "NoneType")
    assert min(kinds[name] for name in expected) > REPLIES / 200, kinds
