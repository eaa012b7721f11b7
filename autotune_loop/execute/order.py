"""One task on its way to a member and back, with the files that it reads and makes."""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from distributed import get_worker

from autotune_loop.candidate import SearchPoint
from autotune_loop.execute import tasks
from autotune_loop.execute.answers import send_answer
from autotune_loop.execute.run_files import FileKey, MissingFileError, key_of
from autotune_loop.execute.run_worker import RunWorker, working_for
from autotune_loop.execute.timing import Timing
from autotune_loop.execute.worker import FarmMember, RunNotKnownError
from autotune_loop.execute.worker_plugin import member_of
from devices.timing.measurement import MeasureFailure, MeasureFailureReason
from targets.build.executable import Executable
from targets.errors import DeviceError, FarmError, GeneratorError

# Kernels and headers; far more than a batch's largest.
_MOST_OUTPUT_BYTES = 2**30


@dataclass(frozen=True)
class Order:
    """A task for a member.

    Attributes:
        device: the device that it holds; None for a build.
        files: what it reads → what members call it.
        folder: where the files that it makes belong; None where it makes none.
        client_id: Dask's name of who waits for the answer; None where it is in this process.
    """

    run_id: str
    task: Callable[..., Any]
    arguments: tuple[Any, ...]
    device: str | None
    files: Mapping[Path, FileKey] = field(default_factory=dict)
    folder: Path | None = None
    client_id: str | None = None


@dataclass(frozen=True)
class Done:
    """What a task gives.

    Attributes:
        result: its paths are those of who has asked.
        took_s: seconds that it held its device or its build slot.
        files: those that it made, by their paths below the order's folder.
    """

    result: Any
    took_s: float
    files: Mapping[str, bytes] = field(default_factory=dict)

    def unpack(self, folder: Path | None) -> None:
        """Write the files.

        Raises:
            FarmError: a name leads out of the folder.
            OSError: it cannot be written.
        """
        for name, content in self.files.items():
            parts = PurePosixPath(name).parts
            if folder is None or not parts or parts[0] == "/" or ".." in parts:
                raise FarmError(f"A member of the farm has sent a file {name[:200]!r} that nobody asked for.")
            path = folder.joinpath(*parts)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


@dataclass(frozen=True)
class Wanting:
    """A member cannot begin, because something has not been sent to it yet.

    Attributes:
        worker: the address of its Dask worker.
        member_id: of the process, whose workers share what they are sent.
        key: the file; None for the run's ticket.
    """

    worker: str
    member_id: str
    key: FileKey | None


def make_order(
    run_id: str, task: Callable[..., Any], arguments: tuple[Any, ...], device: str | None, client_id: str | None
) -> Order:
    """The order for `task(*arguments)`.

    Args:
        client_id: Dask's name of the run's client; None where every path means the same to who carries it out.

    Raises:
        FarmError: a file that it reads is gone.
    """
    if client_id is None:
        return Order(run_id, task, arguments, device)
    folders = [argument for argument in arguments if isinstance(argument, Path)]
    files = {} if task is tasks.forget else _files_read(arguments)
    return Order(run_id, task, arguments, device, files, folders[0] if folders else None, client_id)


def perform(order: Order) -> Done | Wanting:
    """Carry an order out, on the Dask worker that it was sent to."""
    worker = get_worker()
    member = member_of(worker)
    try:
        run = member.run(order.run_id)
        guest = member.is_guest(order.run_id)
        places = {path: member.files_of(order.run_id).path(key) for path, key in order.files.items()} if guest else {}
    except RunNotKnownError:
        return Wanting(worker.address, member.id, None)
    except MissingFileError as missing:
        return Wanting(worker.address, member.id, missing.key)
    started_s = time.monotonic()
    with member.busy(order.device, order.run_id, order.task.__name__), working_for(run):
        if guest:
            try:
                result, files = _perform_for_guest(run, order, places)
            except GeneratorError as error:
                raise _does_not_travel(error, run, member.name) from error
        else:
            result, files = order.task(*order.arguments), {}
    _note_failure(member, order, result)
    done = Done(result, time.monotonic() - started_s, files)
    if order.client_id is not None:
        send_answer(worker, order.client_id, done)
    return done


def _does_not_travel(error: GeneratorError, run: RunWorker, member_name: str) -> GeneratorError:
    """For a generator that works where the run has begun, and not at a member."""
    lines = error.message.splitlines()
    message = " ".join(lines[:2] if lines[0].endswith(":") else lines[:1]).rstrip(".")
    for task in run.context.tasks:
        message = message.replace(str(task.reference.file), task.reference.file.name)
    return GeneratorError(
        f"On the farm's member {member_name}, {message}. Only a generator's own file travels to members.",
        next_step="Put what it imports or includes into that file, install it on every member, give a built generator"
        " executable, or tune without the farm: --scheduler none.",
    )


def _perform_for_guest(run: RunWorker, order: Order, places: dict[Path, Path]) -> tuple[Any, dict[str, bytes]]:
    """The task sees paths of this machine; whoever asked gets their own back."""
    if order.folder is None:
        return order.task(*relocated(order.arguments, places)), {}
    scratch = run.context.work_folder / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=scratch)) / "output"
    try:
        places = {**places, order.folder: folder}
        result = order.task(*relocated(order.arguments, places))
        return relocated(result, {here: there for there, here in places.items()}), _files_made(folder)
    finally:
        shutil.rmtree(folder.parent, ignore_errors=True)


def _files_made(folder: Path) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    size_bytes = 0
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_file() and not path.is_symlink():
            size_bytes += path.stat().st_size
            if size_bytes > _MOST_OUTPUT_BYTES:
                raise FarmError(f"A build made more than {_MOST_OUTPUT_BYTES} bytes.")
            files[path.relative_to(folder).as_posix()] = path.read_bytes()
    return files


def _note_failure(member: FarmMember, order: Order, result: object) -> None:
    if order.device is None:
        return
    failure = result.result if isinstance(result, Timing) else result
    if isinstance(failure, MeasureFailure) and failure.reason is MeasureFailureReason.DEVICE:
        member.failed(order.device, order.run_id, failure.message)
    elif isinstance(failure, DeviceError):
        member.failed(order.device, order.run_id, str(failure))


def _files_read(value: Any) -> dict[Path, FileKey]:
    """The files that a task's arguments name: weights and executables."""
    if isinstance(value, Executable):
        return {value.path: FileKey(value.path.name, value.sha256)}
    if isinstance(value, SearchPoint):
        return {value.weights_path: key_of(value.weights_path)}
    found: dict[Path, FileKey] = {}
    for part in _parts(value):
        found.update(_files_read(part))
    return found


def _parts(value: Any) -> Sequence[Any]:
    if isinstance(value, list | tuple):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, each.name) for each in dataclasses.fields(value)]
    return ()


def relocated(value: Any, places: Mapping[Path, Path]) -> Any:
    """The same value with paths, and those below them, put elsewhere."""
    if isinstance(value, Path):
        for old, new in places.items():
            if value.is_relative_to(old):
                return new / value.relative_to(old)
        return value
    if isinstance(value, list | tuple):
        return type(value)([relocated(part, places) for part in value])
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        moved = {name: relocated(part, places) for name, part in fields.items()}
        changed = {name: part for name, part in moved.items() if part is not fields[name]}
        return dataclasses.replace(value, **changed) if changed else value
    return value
