"""Tasks and results between two machines' folders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from halide_autotune.autotune_loop.candidate import BuiltObject, Origin, SearchedSchedule, SearchPoint
from halide_autotune.autotune_loop.execute.device_session import ReferenceRun, Timing
from halide_autotune.autotune_loop.execute.messages import (
    TaskMessage,
    TaskResult,
    decode,
    encode,
    encode_task,
    read_reply,
    task_error,
    task_result,
)
from halide_autotune.autotune_loop.execute.tasks.build_tasks import BuildWithHeader, Search
from halide_autotune.autotune_loop.execute.tasks.measure_tasks import LookAround, Measure
from halide_autotune.autotune_loop.execute.tasks.own_schedule import BuildOwn
from halide_autotune.autotune_loop.execute.tasks.task import FileKey, key_of
from halide_autotune.autotune_loop.parameters.space import ParameterSpace
from halide_autotune.autotune_loop.specification.tuning_task import TuningTask
from halide_autotune.devices.device import Clock
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.timing.machine_signs import BusyProcess, MachineSigns, Surroundings
from halide_autotune.devices.timing.measure_settings import MeasureSettings, Tolerance
from halide_autotune.devices.timing.measurement import MeasureFailure, MeasureFailureReason, Measurement
from halide_autotune.devices.timing.measurement_at_sizes import over_sizes
from halide_autotune.targets.build.executable import Executable
from halide_autotune.targets.errors import FarmError, ToolchainError
from tests.run_specs import make_task


def test_a_result_has_the_paths_of_who_asked(tmp_path: Path) -> None:
    weights_there, weights_here = tmp_path / "used.weights", Path("/srv/worker/files/ab/used.weights")
    weights_there.write_bytes(b"weights")
    there, here = Path("/home/ann/run/batch/3"), Path("/srv/worker/scratch/x")
    task = Search(there, 7, SearchPoint(Origin.RANDOM, 1, 1, 50, weights_there), "f")
    inputs = task.inputs()
    sent = encode_task("run", task, inputs)
    assert b"/home" not in sent and str(tmp_path).encode() not in sent
    moved = decode(sent, TaskMessage).read_task({key_of(weights_there): weights_here}.__getitem__, here)
    assert moved == replace(task, output_folder=here, point=replace(task.point, weights_path=weights_here))
    built = BuiltObject("f", here / "f.o", here / "f.schedule.h", 1.0)
    result = SearchedSchedule(moved.point, here, here / "f.featurization", "ab", 1.0, built)
    answer = encode(task_result(result, 0.5, {}, {weights_here: key_of(weights_there)}, here))
    assert b"/srv" not in answer
    reply = read_reply(answer)
    assert isinstance(reply, TaskResult) and reply.took_s == 0.5
    back = reply.read_result(task, inputs)
    assert isinstance(back, SearchedSchedule) and back.built is not None
    assert back.point == task.point
    assert back.folder == there
    assert back.built.object_path == there / "f.o"


SIGNS = MachineSigns(0.5, 2, 0.75, 0.5, None, 0.25, 1.2e9, 2.4e9, None)
MEASUREMENT = Measurement("f", "pi", Clock.WALL, (0.25, 0.5), "precision", True, (0.125,), machine=SIGNS)
FAILURE = MeasureFailure("f", "pi", MeasureFailureReason.DEVICE, "It is gone.", "", TroubleKind.LOST, True)


AT_SIZES = over_sizes({"input=4x4": MEASUREMENT, "input=2x2": replace(MEASUREMENT, repetitions_s=(0.1,))})


@pytest.mark.parametrize("result", [MEASUREMENT, AT_SIZES, FAILURE])
def test_a_timing_is_the_same_after_its_message(result: Measurement | MeasureFailure) -> None:
    executable = Executable(Path("/home/ann/batch"), ("f",), "0" * 64)
    run = ReferenceRun(executable, "f", "reference.raw", 60.0, ("g",))
    task = Measure("pi", executable, "f", MeasureSettings(), run, Tolerance())
    files = files_at(Path("/srv"))
    moved = decode(encode_task("run", task, task.inputs()), TaskMessage).read_task(files, None)
    assert isinstance(moved, Measure) and moved.reference is not None
    assert {moved.executable.path, moved.reference.executable.path} == {Path("/srv/batch")}
    timing = Timing(result, 0.75, "boot/1", (MEASUREMENT, AT_SIZES), "pi times alone.")
    reply = read_reply(encode(task_result(timing, 1.0, {}, {}, None)))
    assert isinstance(reply, TaskResult)
    assert reply.read_result(task, task.inputs()) == timing


@pytest.mark.parametrize("found", [Surroundings(SIGNS, BusyProcess(42, "cc1plus", True, 0.5)), None])
def test_a_look_at_a_machine_is_the_same_after_its_message(found: Surroundings | None) -> None:
    task = LookAround("pi", Executable(Path("/home/ann/batch"), ("f",), "0" * 64))
    moved = decode(encode_task("run", task, task.inputs()), TaskMessage).read_task(files_at(Path("/srv")), None)
    assert isinstance(moved, LookAround) and moved.executable.path == Path("/srv/batch")
    reply = read_reply(encode(task_result(found, 1.0, {}, {}, None)))
    assert isinstance(reply, TaskResult)
    assert reply.read_result(task, task.inputs()) == found


def files_at(folder: Path) -> Callable[[FileKey], Path]:
    return lambda key: folder / key.name


def test_an_error_is_the_same_after_its_message() -> None:
    task = BuildWithHeader(Path("/home/ann/objects"), 0, "f", "")
    missing = ToolchainError("There is no compiler.", next_step="Install one.")
    reply = read_reply(encode(task_result(missing, 1.0, {}, {}, Path("/srv"))))
    assert isinstance(reply, TaskResult)
    told = reply.read_result(task, {})
    assert type(told) is ToolchainError and str(told) == str(missing)
    raised = read_reply(encode(task_error(DeviceTrouble(TroubleKind.FULL, "It is full."), 1.0)))
    assert isinstance(raised, TaskResult)
    with pytest.raises(DeviceTrouble, match="It is full") as caught:
        raised.read_result(task, {})
    assert caught.value.kind is TroubleKind.FULL


def test_a_message_that_is_not_what_it_should_be_is_refused() -> None:
    task = BuildWithHeader(Path("/home/ann/objects"), 0, "f", "")
    sent = decode(encode_task("run", task, {}), TaskMessage)
    for damaged in (
        TaskMessage("run", "os.system", sent.task),
        TaskMessage("run", "measure", sent.task),
        TaskMessage("run", task.kind, msgspec.Raw(encode({"output_folder": "../..", "task_index": 0}))),
    ):
        with pytest.raises(FarmError):
            damaged.read_task(files_at(Path("/srv")), Path("/srv/scratch"))
    measured = task_result(Timing(MEASUREMENT, 1.0), 1.0, {}, {}, None)
    with pytest.raises(FarmError):
        measured.read_result(task, {})
    with pytest.raises(FarmError):
        read_reply(b"nothing")


def done(files: dict[str, bytes]) -> TaskResult:
    return task_result(None, 0.0, files, {}, None)


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a/../../evil", ""])
def test_output_cannot_leave_its_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(FarmError, match="unexpected"):
        done({name: b"x"}).unpack(tmp_path / "output")
    with pytest.raises(FarmError, match="unexpected"):
        done({"good": b"x"}).unpack(None)
    assert list(tmp_path.iterdir()) == []


def test_output_goes_into_its_folder(tmp_path: Path) -> None:
    done({"a/b.o": b"x"}).unpack(tmp_path / "output")
    assert (tmp_path / "output" / "a" / "b.o").read_bytes() == b"x"


def test_a_set_of_parameters_is_the_same_after_its_message() -> None:
    space = ParameterSpace({"tile": "16..64:x2"}, ("tile < width",), {"width": "128"}, {"tile": "32"})
    task = replace(make_task("blur", Path("/home/ann/blur.py")), space=space)
    assert space.listed is not None  # what is derived from it does not travel
    place = Path("/srv/worker/blur.py")
    key = FileKey("blur.py", "0" * 64)
    sent = encode((task,), {task.reference.file: key})
    assert decode(sent, tuple[TuningTask, ...], lambda _: place) == (
        replace(task, reference=replace(task.reference, file=place)),
    )
    build = BuildOwn(Path("/home/ann/objects/f"), 0, "f", {"tile": "64"})
    moved = decode(encode_task("run", build, build.inputs()), TaskMessage).read_task(files_at(Path("/srv")), Path("/s"))
    assert moved == replace(build, output_folder=Path("/s"))
