"""What transports over a wire promise when the wire, the device or its other users misbehave."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.remote import shared_connection
from halide_autotune.devices.remote.transport import AgentTransport
from halide_autotune.devices.transport import RunOutcome
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.process.stop_signal import StopSignal
from tests.fault_proxy import Direction
from tests.process_state import PATIENCE_S, act_when, await_condition, await_other_text, has_ended, runs
from tests.remote_board import AdbBoard, RemoteBoard, SshBoard

pytestmark = pytest.mark.slow

TIME_S = 60.0
GONE = {TroubleKind.LOST, TroubleKind.TIMEOUT, TroubleKind.PROTOCOL_ERROR, TroubleKind.UNREACHABLE}


@pytest.fixture
def transport(board: RemoteBoard, cache: ContentCache, x86_probe: Path) -> Iterator[AgentTransport]:
    opened = board.transport(cache)
    opened.open()
    opened.push(x86_probe, "probe")
    yield opened
    board.proxy.silence(False)
    opened.close()


class Waiting:
    """A program that waits for ever on the device, with a child and a grandchild, in a thread."""

    def __init__(self, transport: AgentTransport, tmp_path: Path) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._note = tmp_path / "family"
        self.outcome: Future[RunOutcome] = self._pool.submit(
            transport.run, "probe", ["family", str(self._note)], 2 * PATIENCE_S
        )
        await_condition(lambda: self.outcome.done() or (self._note.exists() and self._note.read_text().strip()))
        assert not self.outcome.done()
        self.ids = [int(word) for word in self._note.read_text().split()]

    def trouble(self) -> DeviceTrouble:
        error = self.outcome.exception(timeout=2 * PATIENCE_S)
        assert isinstance(error, DeviceTrouble), error
        self._pool.shutdown()
        return error

    def has_ended(self) -> bool:
        """Whether the whole family is gone, soon: the device is this machine."""
        return all(has_ended(pid) for pid in self.ids)


def works(transport: AgentTransport) -> bool:
    return transport.run("probe", ["exit", "7"], TIME_S).exit_code == 7


def works_again(transport: AgentTransport) -> bool:
    """Whether the device is back before long."""
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            return works(transport)
        except DeviceTrouble as trouble:
            assert trouble.kind in GONE, trouble
            assert time.monotonic() < deadline_s, trouble
            time.sleep(0.2)


def some_file(tmp_path: Path, size_bytes: int) -> Path:
    path = tmp_path / "data"
    path.write_bytes(os.urandom(size_bytes))
    return path


def back(transport: AgentTransport, tmp_path: Path) -> bytes:
    transport.pull("data", tmp_path / "back")
    return (tmp_path / "back").read_bytes()


def test_a_link_that_drops_in_mid_push_is_made_again(
    board: RemoteBoard, transport: AgentTransport, tmp_path: Path
) -> None:
    source = some_file(tmp_path, 3_000_000)
    board.proxy.drop_after(Direction.TO_SERVER, 1_000_000)
    transport.push(source, "data")
    assert back(transport, tmp_path) == source.read_bytes()


def test_a_push_is_whole_or_not_there(board: RemoteBoard, transport: AgentTransport, tmp_path: Path) -> None:
    transport.push(some_file(tmp_path, 50_000), "data")
    before = back(transport, tmp_path)
    board.proxy.drop_after(Direction.TO_SERVER, 500_000)
    board.proxy.refuse()
    with pytest.raises(DeviceTrouble) as caught:
        transport.push(some_file(tmp_path, 3_000_000), "data")
    assert caught.value.kind in GONE
    board.proxy.refuse(False)
    assert works_again(transport) and back(transport, tmp_path) == before


def test_a_link_that_drops_in_mid_run_ends_the_program(
    board: RemoteBoard, transport: AgentTransport, tmp_path: Path
) -> None:
    waiting = Waiting(transport, tmp_path)
    board.proxy.drop_all()
    assert waiting.trouble().kind is TroubleKind.LOST
    assert works_again(transport)
    assert waiting.has_ended()


def test_silence_in_mid_run_is_noticed_and_the_program_is_ended_by_the_next(
    board: RemoteBoard, transport: AgentTransport, tmp_path: Path
) -> None:
    waiting = Waiting(transport, tmp_path)
    board.proxy.silence()
    assert waiting.trouble().kind in (TroubleKind.TIMEOUT, TroubleKind.LOST)
    board.proxy.drop_all()
    board.proxy.silence(False)
    assert works_again(transport)
    assert waiting.has_ended()


def test_garbage_on_the_wire_is_no_result(board: RemoteBoard, transport: AgentTransport, tmp_path: Path) -> None:
    waiting = Waiting(transport, tmp_path)
    board.proxy.flip(Direction.TO_CLIENT)
    assert waiting.trouble().kind in GONE
    board.proxy.flip(Direction.TO_CLIENT, byte_count=0)
    board.proxy.drop_all()
    assert works_again(transport)
    assert waiting.has_ended()


def test_the_agents_death_is_noticed_and_its_program_ended(
    board: RemoteBoard, transport: AgentTransport, tmp_path: Path
) -> None:
    waiting = Waiting(transport, tmp_path)
    family = [psutil.Process(pid) for pid in waiting.ids]
    agent = next(parent for parent in family[0].parents() if "agent-" in " ".join(parent.cmdline()))
    agent.send_signal(signal.SIGKILL)
    assert waiting.trouble().kind in {TroubleKind.LOST, TroubleKind.BROKEN}
    assert works_again(transport)
    assert waiting.has_ended()


def test_a_server_that_is_started_again_is_found_again(
    board: RemoteBoard, transport: AgentTransport, tmp_path: Path
) -> None:
    waiting = Waiting(transport, tmp_path)
    if isinstance(board, SshBoard):
        board.server.kill()
        board.server.start()
    else:
        assert isinstance(board, AdbBoard)
        board.phone.reboot()
    assert waiting.trouble().kind in GONE
    assert works_again(transport)


def test_a_slow_link_takes_its_time(board: RemoteBoard, transport: AgentTransport, tmp_path: Path) -> None:
    source = some_file(tmp_path, 600_000)
    board.proxy.limit_rate(200_000)
    board.proxy.delay(0.05)
    transport.push(source, "data")
    assert works(transport)
    board.proxy.limit_rate(None)
    board.proxy.delay(0.0)
    assert back(transport, tmp_path) == source.read_bytes()


def test_what_is_there_already_is_not_sent_again(board: RemoteBoard, transport: AgentTransport, tmp_path: Path) -> None:
    source = some_file(tmp_path, 400_000)
    transport.push(source, "data")
    before = board.proxy.bytes_passed(Direction.TO_SERVER)
    transport.push(source, "data")
    board.proxy.drop_all()
    assert works_again(transport)
    transport.push(source, "data")
    assert board.proxy.bytes_passed(Direction.TO_SERVER) - before < 100_000


def test_a_full_storage_is_one_message_and_passes(
    board: RemoteBoard, transport: AgentTransport, tmp_path: Path
) -> None:
    if not isinstance(board, AdbBoard):
        pytest.skip("the server's storage is this machine's; the agent's own tests fill one")
    board.phone.fill_storage(200_000)
    with pytest.raises(DeviceTrouble, match="no room|full") as caught:
        transport.push(some_file(tmp_path, 3_000_000), "data")
    assert caught.value.kind is TroubleKind.FULL
    board.phone.fill_storage(None)
    transport.push(some_file(tmp_path, 3_000_000), "data")


def test_two_tuners_cannot_share_a_device(board: RemoteBoard, transport: AgentTransport, cache: ContentCache) -> None:
    other = board.transport(cache, owner="ann@elsewhere")
    with pytest.raises(DeviceTrouble, match="tester@here") as caught:
        other.open()
    assert caught.value.kind is TroubleKind.LEASED
    transport.close()
    other.open()
    other.close()


def lease_of(board: RemoteBoard) -> Path:
    assert board.place.lease_folder is not None
    return Path(board.place.lease_folder) / "slot-0"


def test_the_lease_of_a_dead_owner_expires(board: RemoteBoard, cache: ContentCache) -> None:
    dead = board.transport(cache)
    dead.open()
    # As after kill -9: nothing is said to the device any more.
    dead._connection.end_heartbeat(PATIENCE_S)
    other = board.transport(cache, owner="ann@elsewhere")
    with pytest.raises(DeviceTrouble, match="tester@here"):
        other.open()
    lease = lease_of(board)
    lease.write_text(re.sub("expires .*", "expires 0", lease.read_text()))
    other.open()
    with pytest.raises(DeviceTrouble, match="ann@elsewhere") as caught:
        dead.run("probe", [], TIME_S)
    assert caught.value.kind is TroubleKind.LEASED
    other.close()
    dead.close()


def test_a_lease_is_kept_while_its_owner_does_nothing(
    board: RemoteBoard, cache: ContentCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_connection, "_BEATS_PER_LEASE", 1000)
    first = board.transport(cache)
    first.open()
    for _ in range(2):
        before = lease_of(board).read_text()
        await_other_text(lease_of(board), before)
    other = board.transport(cache, owner="ann@elsewhere")
    with pytest.raises(DeviceTrouble, match="tester@here"):
        other.open()
    other.close()
    first.close()


def test_a_stop_ends_what_runs(board: RemoteBoard, transport: AgentTransport, tmp_path: Path) -> None:
    stop = StopSignal()
    note = tmp_path / "family"
    act_when(lambda: note.exists() and note.read_text().endswith("\n"), stop.set)
    outcome = transport.run("probe", ["family", str(note)], 2 * PATIENCE_S, stop)
    assert outcome.stopped
    ids = [int(word) for word in note.read_text().split()]
    assert not any(runs(pid) for pid in ids)
    assert works(transport)
