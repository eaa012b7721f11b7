"""What can go wrong in a storm: each kind is a function that begins a fault and, after its `yield`, ends it."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.killed_tuner import Tuner
from tests.fault_proxy import Direction
from tests.loopback_farm import LoopbackFarm
from tests.remote_board import AdbBoard, RemoteBoard, SshBoard

# How long a fault that waits for its moment, such as a transfer, does so.
_PATIENCE_S = 20.0
_LOOK_S = 0.02
# A file is on its way for some milliseconds.
_FILE_LOOK_S = 0.002
_AGENT = "agent-"


class MissedError(Exception):
    """There was nothing that the fault could spoil."""


@dataclass
class Scene:
    """What faults are injected into.

    Attributes:
        boards: the devices of the run.
        farm: the farm that serves them; None where the tuner reaches them itself.
        serves: board → its worker.
        start_worker: starts a worker of the farm anew.
        over: set when the storm is to end.
        disks: board → its work folder, where that is a file system of its own.
        turn: of faults that concern everybody.
    """

    boards: list[RemoteBoard]
    tuner: Tuner
    chance: random.Random
    farm: LoopbackFarm | None = None
    serves: dict[str, str] = field(default_factory=dict)
    start_worker: Callable[[str], None] = lambda name: None
    over: threading.Event = field(default_factory=threading.Event)
    disks: dict[str, Path] = field(default_factory=dict)
    turn: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True)
class Kind:
    """A kind of fault.

    Attributes:
        fault: begins it and ends it.
        hold_s: it lasts between the two.
        fits: whether it can be injected there.
        in_a_kernel: it begins while a kernel is being timed.
        concerns_all: it concerns every board, so only one of these lasts at a time.
        starts_again: the tuner is started again after it.
    """

    fault: Callable[[Scene, RemoteBoard], AbstractContextManager[None]]
    hold_s: tuple[float, float] = (0.0, 0.0)
    fits: Callable[[Scene, RemoteBoard], bool] = lambda scene, board: True
    in_a_kernel: bool = True
    concerns_all: bool = False
    starts_again: bool = False


def board_root(board: RemoteBoard) -> Path:
    """The folder that everything of a board lies in."""
    if isinstance(board, AdbBoard):
        return board.phone.files.root
    assert board.place.folder is not None
    return Path(board.place.folder)


def sdk_folder(board: RemoteBoard) -> Path:
    """What the SDK works in on the board."""
    if isinstance(board, AdbBoard):
        return board.phone.temporary / "halide-autotune-sdk"
    return board_root(board)


def programs(board: RemoteBoard, with_agent: bool = False) -> list[int]:
    """The processes on the board that run a kernel, and those of the agent if they are wanted."""
    root = f"{board_root(board)}/"
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                program = os.readlink(f"/proc/{entry}/exe")
                if program.startswith(root) and (with_agent or not Path(program).name.startswith(_AGENT)):
                    found.append(int(entry))
    return found


def await_kernel(scene: Scene, board: RemoteBoard) -> list[int]:
    """The kernel's processes once one is being timed there; none if that is not soon."""
    until_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until_s and not scene.over.is_set():
        if found := programs(board):
            return found
        time.sleep(_LOOK_S)
    return []


def _signal_all(processes: list[int], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


@contextlib.contextmanager
def _cut_transfer(scene: Scene, board: RemoteBoard) -> Iterator[None]:
    sent = board.proxy.bytes_passed(Direction.TO_SERVER)
    byte_count = scene.chance.randrange(1, 60_000)
    board.proxy.drop_after(Direction.TO_SERVER, byte_count, reset=scene.chance.random() < 0.5)
    until_s = time.monotonic() + _PATIENCE_S
    while board.proxy.bytes_passed(Direction.TO_SERVER) < sent + byte_count:
        if time.monotonic() > until_s or scene.over.is_set():
            raise MissedError  # it is yet to happen, and does not count
        time.sleep(_LOOK_S)
    yield


@contextlib.contextmanager
def _cut_run(scene: Scene, board: RemoteBoard) -> Iterator[None]:
    board.proxy.drop_all(reset=scene.chance.random() < 0.5)
    yield


@contextlib.contextmanager
def _silence(scene: Scene, board: RemoteBoard) -> Iterator[None]:
    board.proxy.silence()
    yield
    board.proxy.silence(False)


@contextlib.contextmanager
def _restart(scene: Scene, board: RemoteBoard) -> Iterator[None]:
    if isinstance(board, AdbBoard):
        board.phone.reboot_soon()
        yield
        return
    with _restarted(board):
        yield


@contextlib.contextmanager
def _restarted(board: RemoteBoard) -> Iterator[None]:
    assert isinstance(board, SshBoard)
    board.server.kill()
    yield
    board.server.start()


@contextlib.contextmanager
def _refused_key(scene: Scene, board: RemoteBoard) -> Iterator[None]:
    assert isinstance(board, SshBoard)
    keys = board.server.authorized_keys.read_text()
    board.server.authorized_keys.write_text("")
    board.proxy.drop_all()
    yield
    board.server.authorized_keys.write_text(keys)
    _start_again(scene)


@contextlib.contextmanager
def _changed_host_key(scene: Scene, board: RemoteBoard) -> Iterator[None]:
    assert isinstance(board, SshBoard)
    private = board.server.host_key()
    kept = {path: path.read_bytes() for path in (private, private.with_suffix(".pub"))}
    with _restarted(board):
        board.server.change_host_key()
    yield
    with _restarted(board):
        for path, content in kept.items():
            path.write_bytes(content)
    _start_again(scene)


def _start_again(scene: Scene) -> None:
    """Do what the message asks for once a key is repaired: a device that needed a person is left out until then.

    One start serves all keys that were repaired before it.
    """
    repaired_s = time.monotonic()
    with scene.turn:
        scene.tuner.interrupt(started_before_s=repaired_s)


@contextlib.contextmanager
def _full_disk(scene: Scene, board: RemoteBoard) -> Iterator[None]:
    if isinstance(board, AdbBoard):
        board.phone.fill_storage(0)
        yield
        board.phone.fill_storage(None)
        return
    filler = scene.disks[board.name] / "of-others"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(2**16))
    yield
    filler.unlink()


@contextlib.contextmanager
def _slow_link(scene: Scene, board: RemoteBoard) -> Iterator[None]:
    board.proxy.limit_rate(scene.chance.uniform(10_000, 100_000))
    yield
    board.proxy.limit_rate(None)


@contextlib.contextmanager
def _garbage(scene: Scene, board: RemoteBoard) -> Iterator[None]:
    board.proxy.flip(scene.chance.choice(list(Direction)), byte_count=scene.chance.randrange(1, 500))
    yield


@contextlib.contextmanager
def _wrong_checksum(scene: Scene, board: RemoteBoard) -> Iterator[None]:
    """One bit of the next file that arrives is another one, as of a bad memory card."""
    until_s = time.monotonic() + _PATIENCE_S
    while not any(_spoil(part) for part in sdk_folder(board).glob("s-*/.part-*")):
        if time.monotonic() > until_s or scene.over.is_set():
            raise MissedError
        time.sleep(_FILE_LOOK_S)
    yield


def _spoil(part: Path) -> bool:
    with contextlib.suppress(OSError), part.open("r+b") as file:
        if first := file.read(1):
            file.seek(0)
            file.write(bytes([first[0] ^ 1]))
            return True
    return False


@contextlib.contextmanager
def _crash(scene: Scene, board: RemoteBoard) -> Iterator[None]:
    if not (running := programs(board)):
        raise MissedError
    _signal_all(running, signal.SIGSEGV)
    yield


@contextlib.contextmanager
def _hang(scene: Scene, board: RemoteBoard) -> Iterator[None]:
    if not (hanging := programs(board)):
        raise MissedError
    _signal_all(hanging, signal.SIGSTOP)
    yield
    _signal_all([process for process in hanging if process in programs(board)], signal.SIGCONT)


@contextlib.contextmanager
def _heat(scene: Scene, board: RemoteBoard) -> Iterator[None]:
    """All that runs on the board stands still for three quarters of the time, as with a throttled clock."""
    cool = threading.Event()

    def throttle() -> None:
        while not cool.is_set():
            running = programs(board, with_agent=True)
            for _ in range(10):
                _signal_all(running, signal.SIGSTOP)
                time.sleep(0.003)
                _signal_all(running, signal.SIGCONT)
                time.sleep(0.001)

    thread = threading.Thread(target=throttle)
    thread.start()
    yield
    cool.set()
    thread.join()


@contextlib.contextmanager
def _killed_tuner(scene: Scene, board: RemoteBoard) -> Iterator[None]:
    if not scene.tuner.kill():
        raise MissedError
    yield


@contextlib.contextmanager
def _lost_worker(scene: Scene, board: RemoteBoard) -> Iterator[None]:
    assert scene.farm is not None
    name = scene.serves[board.name]
    scene.farm.workers[name].kill()
    yield
    scene.start_worker(name)


@contextlib.contextmanager
def _killed_scheduler(scene: Scene, board: RemoteBoard) -> Iterator[None]:
    assert scene.farm is not None
    scene.farm.scheduler.kill()
    yield
    scene.farm.start_scheduler()


def _is_ssh(scene: Scene, board: RemoteBoard) -> bool:
    return isinstance(board, SshBoard)


def _has_disk(scene: Scene, board: RemoteBoard) -> bool:
    return isinstance(board, AdbBoard) or board.name in scene.disks


def _is_farm(scene: Scene, board: RemoteBoard) -> bool:
    return scene.farm is not None


KINDS = {
    "cut transfer": Kind(_cut_transfer, in_a_kernel=False),
    "cut run": Kind(_cut_run),
    # Some are longer than a device may be silent.
    "silence": Kind(_silence, (0.1, 14.0)),
    "restart": Kind(_restart, (0.1, 2.0)),
    "refused key": Kind(_refused_key, (1.0, 4.0), _is_ssh, starts_again=True),
    "changed host key": Kind(_changed_host_key, (1.0, 4.0), _is_ssh, starts_again=True),
    "full disk": Kind(_full_disk, (1.0, 6.0), _has_disk),
    "slow link": Kind(_slow_link, (0.5, 3.0)),
    "garbage": Kind(_garbage),
    "wrong checksum": Kind(_wrong_checksum, in_a_kernel=False),
    "crash of a kernel": Kind(_crash),
    "hang": Kind(_hang, (1.0, 20.0)),
    "heat": Kind(_heat, (1.0, 5.0)),
    "killed tuner": Kind(_killed_tuner, concerns_all=True),
    "lost worker": Kind(_lost_worker, (0.1, 2.0), _is_farm, concerns_all=True),
    "killed scheduler": Kind(_killed_scheduler, (0.1, 2.0), _is_farm, concerns_all=True),
}
