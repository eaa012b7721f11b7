"""What a run and its farm's workers send each other: msgpack, read by the types of these records.

A path is sent as the key of an input file, or as a place in the task's output folder; each side puts its own in its
place as it reads the message. A path that is neither is an error.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, TypeVar, cast, get_args, get_type_hints

import msgspec

from halide_autotune.autotune_loop.execute.device_session import Timing
from halide_autotune.autotune_loop.execute.tasks.task import BuildTask, FileKey, R_co, Task, key_of
from halide_autotune.autotune_loop.execute.timing_message import DurationS, TimingMessage
from halide_autotune.autotune_loop.execute.travelling_generators import UNPACKED, travelling_generators
from halide_autotune.autotune_loop.farm.told import BadMessageError, read_told
from halide_autotune.autotune_loop.specification.build_limits import BuildLimits
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.health.probe import DeviceSense
from halide_autotune.devices.timing.func_times import FuncTimes
from halide_autotune.devices.timing.machine_signs import Surroundings
from halide_autotune.targets.errors import FarmError, SdkError, os_error_as
from halide_autotune.targets.profile.profile import TargetProfile
from halide_autotune.targets.values.texts import printable, printable_lines

_T = TypeVar("_T")

# Where a file with that key is.
FileAt = Callable[[FileKey], Path]

_LONGEST_NAME_CHARACTERS = 400
# It names a folder of the worker's.
_RunId = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,64}\Z")]
_Bytes = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
# What a device says in these has bounds of its own, in their annotations.
_FROM_DEVICES = (DeviceSense, FuncTimes, Surroundings)


class RemoteRun(msgspec.Struct, frozen=True):
    """A run as a worker on another machine sees it; nothing in it is a secret or a device of the user's machine.

    Attributes:
        run_id: unique.
        tuning_tasks: a tuple of TuningTask; their generators are files to send, or lie in an unpacked archive.
        archives: generators of several files, by the name of the folder that each is unpacked in.
        inputs: the KernelInputs; a build needs none of their files.
        threads: Halide threads that a kernel runs with.
    """

    run_id: _RunId
    profile: TargetProfile
    parallelism: int
    threads: int
    limits: BuildLimits
    tuning_tasks: msgspec.Raw
    archives: dict[str, FileKey]
    inputs: msgspec.Raw


class FilePart(msgspec.Struct, frozen=True):
    """A piece of a file on its way to a worker.

    Attributes:
        offset, size_bytes: where it begins, and of the whole file.
        executable: the file's mode.
    """

    run_id: _RunId
    key: FileKey
    offset: _Bytes
    size_bytes: _Bytes
    executable: bool
    content: bytes


class TaskMessage(msgspec.Struct, frozen=True):
    """A task for a worker.

    Attributes:
        kind: the task's.
        task: its record.
    """

    run_id: str
    kind: str
    task: msgspec.Raw

    @property
    def builds(self) -> bool:
        """Whether the task makes files."""
        return issubclass(Task.kinds.get(self.kind, Task), BuildTask)

    def read_task(self, file_at: FileAt, folder: Path | None) -> Task[Any]:
        """Return the task with this machine's paths.

        Args:
            folder: where its files belong here; None for one that makes none.

        Raises:
            FarmError: it is of no kind that this process knows, or not what its kind wants.
        """
        if self.kind not in Task.kinds:
            raise BadMessageError(f"This worker knows no task of kind {self.kind[:80]!r}.")
        task: Task[Any] = decode(self.task, Task.kinds[self.kind], file_at, folder)
        return task


class MissingInput(msgspec.Struct, frozen=True, tag=True):
    """A worker cannot begin a task, because something has not been sent to it yet.

    Attributes:
        address: of the Dask worker that has the task.
        worker_id: of the process, whose Dask workers share what they are sent.
        key: the file; None for the run itself.
    """

    address: str
    worker_id: str
    key: FileKey | None


class TaskResult(msgspec.Struct, frozen=True, tag=True):
    """What a task gave.

    Attributes:
        result_type: the name of the result's type.
        took_s: seconds that it held its device or its build slot.
        files: those that it made, by their paths below its output folder.
        is_raised: the result is an error that the task has raised.
    """

    result_type: str
    result: msgspec.Raw
    took_s: DurationS
    files: dict[str, bytes]
    is_raised: bool = False

    def read_result(self, task: Task[R_co], inputs: Mapping[Path, FileKey]) -> R_co:
        """Return the result with the paths of who has asked.

        Raises:
            SdkError: the task has raised it; DeviceTrouble where it measures.
            BadMessageError: it is not what the task gives.
        """
        if self.is_raised:
            error = decode(self.result, _Error).unwrapped()
            if isinstance(task, BuildTask) or isinstance(error, DeviceTrouble):
                raise error
            raise DeviceTrouble(TroubleKind.BROKEN, error.message, next_step=error.next_step)
        types = _result_types(type(task))
        if self.result_type not in types:
            raise BadMessageError(f"A worker has answered a {task.kind!r} task with {self.result_type[:80]!r}.")
        places = {key: path for path, key in inputs.items()}
        value: Any = decode(self.result, types[self.result_type], places.__getitem__, output_folder(task))
        if isinstance(value, _Error | TimingMessage):
            value = value.unwrapped()
        elif isinstance(value, _FROM_DEVICES):
            value = read_told(type(value), value)
        elif isinstance(value, str):
            value = printable(value)[:_LONGEST_NAME_CHARACTERS]
        result: R_co = value
        return result

    def unpack(self, folder: Path | None) -> None:
        """Write the files.

        Raises:
            BadMessageError: a name leads out of the folder, or is none.
            FarmError: it cannot be written.
        """
        for name, content in self.files.items():
            path = None if folder is None else _below(folder, name)
            if path is None or path == folder:
                raise BadMessageError(f"A worker of the farm has sent an unexpected file: {name[:200]!r}.")
            with os_error_as(FarmError, f"{path}, which a worker has made, cannot be written"):
                try:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content)
                except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
                    raise BadMessageError(f"A worker has sent a file in the place of a folder: {name!r}.") from error
                except OSError:
                    with contextlib.suppress(OSError):  # the first error says more
                        path.unlink(missing_ok=True)
                    raise


Reply = TaskResult | MissingInput


def encode_run(run_id: str, context: RunContext) -> tuple[bytes, dict[FileKey, Path]]:
    """Return the message about a run, and the files that its workers will ask for.

    Raises:
        FarmError: a generator or an input file cannot be read.
        GeneratorError, ToolchainError: a C++ generator cannot be built here.
    """
    generators = travelling_generators(context.tasks, context.workspace)
    alone = [task.reference.file for task in generators.tasks if not task.reference.file.is_relative_to(UNPACKED)]
    paths = [*alone, *generators.archives.values(), *context.inputs.files.values()]
    keys = {path: key_of(path) for path in paths}
    run = RemoteRun(
        run_id=run_id,
        profile=context.profile,
        parallelism=context.parallelism,
        threads=context.devices[0].threads if context.devices else context.parallelism,
        limits=context.limits,
        tuning_tasks=msgspec.Raw(encode(generators.tasks, keys, UNPACKED)),
        archives={name: keys[path] for name, path in generators.archives.items()},
        inputs=msgspec.Raw(encode(context.inputs, keys)),
    )
    return encode(run), {key: path for path, key in keys.items()}


def encode_task(run_id: str, task: Task[Any], inputs: Mapping[Path, FileKey]) -> bytes:
    """Return the message that has a worker carry out a task."""
    return encode(TaskMessage(run_id, task.kind, msgspec.Raw(encode(task, inputs, output_folder(task)))))


def task_result(
    result: object, took_s: float, files: dict[str, bytes], inputs: Mapping[Path, FileKey], folder: Path | None
) -> TaskResult:
    """Return what a task gave, as its worker sends it.

    Args:
        result: an instance of one of the types that the task's `run` says.
        inputs, folder: of the task, on this machine.
    """
    name, value = type(result).__name__, result
    if isinstance(result, SdkError):
        name, value = _ERROR, _Error.of(result)
    elif isinstance(result, Timing):
        value = TimingMessage.wrapped(result)
    return TaskResult(name, msgspec.Raw(encode(value, inputs, folder)), took_s, files)


def task_error(error: SdkError, took_s: float) -> TaskResult:
    """Return the error that a task has raised, as its worker sends it."""
    return TaskResult(_ERROR, msgspec.Raw(encode(_Error.of(error))), took_s, {}, is_raised=True)


def output_folder(task: Task[Any]) -> Path | None:
    """Return where a task's files belong; None where it makes none."""
    return task.output_folder if isinstance(task, BuildTask) else None


# msgspec tells two dataclasses of a union apart by their place in a record only, and knows no exceptions.
_ERROR = "SdkError"
_ERROR_KINDS: tuple[type[SdkError], ...] = (SdkError, *SdkError.__subclasses__())
_ERRORS = {kind.__name__: kind for kind in _ERROR_KINDS}


class _Error(msgspec.Struct, frozen=True):
    kind: str
    message: str
    next_step: str
    trouble: TroubleKind | None

    @classmethod
    def of(cls, error: SdkError) -> _Error:
        kind = next(each.__name__ for each in type(error).__mro__ if each.__name__ in _ERRORS)
        trouble = error.kind if isinstance(error, DeviceTrouble) else None
        return cls(kind, error.message, error.next_step, trouble)

    def unwrapped(self) -> SdkError:
        message, next_step = printable_lines(self.message), printable_lines(self.next_step)
        if self.trouble is not None:
            return DeviceTrouble(self.trouble, message, next_step=next_step)
        return _ERRORS.get(self.kind, SdkError)(message, next_step=next_step)


def read_reply(content: object) -> Reply:
    """Read a worker's reply to a task.

    Raises:
        BadMessageError: it is none.
    """
    if not isinstance(content, bytes):
        raise BadMessageError("A worker of the farm has answered with something else than a message.")
    return decode(content, cast("type[Reply]", Reply))


@cache
def _result_types(task_type: type[Task[Any]]) -> dict[str, Any]:
    """The types that a task's `run` returns, as they are sent, by their names."""
    returned = get_type_hints(task_type.run)["return"]
    types = get_args(returned) or (returned,)
    named: dict[str, Any] = {}
    for each in types:
        if issubclass(each, SdkError):
            named[_ERROR] = _Error
        else:
            named[each.__name__] = TimingMessage if each is Timing else each
    return named


def encode(value: object, inputs: Mapping[Path, FileKey] | None = None, folder: Path | None = None) -> bytes:
    """Return a message.

    Args:
        inputs, folder: what the paths in it are: input files, or below a task's output folder.
    """

    def sent(part: object) -> object:
        if not isinstance(part, Path):
            raise NotImplementedError(f"{type(part).__name__} is not sent")
        if inputs and part in inputs:
            return inputs[part]
        assert folder is not None, f"{part} is no input of its task"
        return part.relative_to(folder).as_posix()

    return msgspec.msgpack.encode(value, enc_hook=sent)


def _no_file(key: FileKey) -> Path:
    raise KeyError(f"no file {key.name} belongs to it")


def decode(
    content: bytes | msgspec.Raw, message_type: type[_T], file_at: FileAt = _no_file, folder: Path | None = None
) -> _T:
    """Read a message, with this machine's paths.

    Raises:
        BadMessageError: it is not one of that type, or has a path that is neither an input file's nor below the folder.
    """

    def read(wanted: type, part: object) -> object:
        if wanted is not Path:
            raise NotImplementedError(f"{wanted.__name__} is not sent")
        if isinstance(part, Mapping):
            return file_at(msgspec.convert(part, FileKey))
        path = None if folder is None or not isinstance(part, str) else _below(folder, part)
        if path is None:
            raise ValueError(f"an unexpected path: {str(part)[:200]!r}")
        return path

    try:
        return msgspec.msgpack.decode(content, type=message_type, dec_hook=read)
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, RecursionError) as error:
        reason = printable(str(error))[:_LONGEST_NAME_CHARACTERS].rstrip(".")
        raise BadMessageError(f"A message of the farm cannot be read: {reason}.") from error


def _below(folder: Path, name: str) -> Path | None:
    """The place of that name in a folder; None where it leads out of it."""
    path = PurePosixPath(name)
    is_name = len(name) <= _LONGEST_NAME_CHARACTERS and all(len(os.fsencode(part)) <= 255 for part in path.parts)
    return None if path.is_absolute() or ".." in path.parts or "\0" in name or not is_name else folder.joinpath(path)
