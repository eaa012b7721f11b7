"""Whatever a worker of a farm answers is a sane result or one typed failure, and writes nothing elsewhere."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.autotune_loop.execute.device_session import Timing
from halide_autotune.autotune_loop.execute.messages import (
    FilePart,
    RemoteRun,
    TaskResult,
    decode,
    encode,
    read_reply,
    task_error,
    task_result,
)
from halide_autotune.autotune_loop.execute.tasks.measure_tasks import LookAround, Measure, OpenDevice, Sense, TimeFuncs
from halide_autotune.autotune_loop.execute.tasks.task import FileKey, Task
from halide_autotune.autotune_loop.execute.timing_message import check_asked
from halide_autotune.autotune_loop.farm.told import BadMessageError
from halide_autotune.devices.device import Clock
from halide_autotune.devices.device_trouble import DeviceTrouble
from halide_autotune.devices.health.probe import DeviceSense
from halide_autotune.devices.timing.func_times import FuncTime, FuncTimes
from halide_autotune.devices.timing.machine_signs import MachineSigns, Surroundings
from halide_autotune.devices.timing.measure_settings import MeasureSettings, Tolerance
from halide_autotune.devices.timing.measurement import Beside, MeasureFailure, MeasureFailureReason, Measurement
from halide_autotune.devices.timing.measurement_at_sizes import over_sizes
from halide_autotune.targets.build.executable import Executable
from halide_autotune.targets.errors import FarmError, SdkError, UsageError
from halide_autotune.targets.values.records import record
from tests.device_replies import SENSE, on_the_wire, spoiled
from tests.recorded_session import spoiled_bytes

SIGNS = MachineSigns(0.5, 2, 0.75, 0.5, None, 0.25, 1.2e9, 2.4e9, None)
PAIR = Beside("y", (0.5, 0.5), (False, False), (True, False))
MEASURED = Measurement("f", "pi", Clock.WALL, (0.25, 0.5), "precision", True, (0.125,), beside=PAIR, machine=SIGNS)
FAILURE = MeasureFailure("f", "pi", MeasureFailureReason.CRASHED, "It crashed.", "")
MEASURE = Measure("pi", Executable(Path("batch"), ("f",), "0" * 64), "f", MeasureSettings(), None, Tolerance())
FUNCS = FuncTimes("f", "pi", 0.5, 400, (FuncTime("blur", 0.375, 1.5, 2**20, 64), FuncTime("out", 0.125, 2.0, 0, 0)))
SENSED = record(DeviceSense)(SENSE)
ANSWERS: list[tuple[Task[Any], object]] = [
    (MEASURE, Timing(MEASURED, 0.75, "boot/1", (replace(MEASURED, beside=None),), "pi times alone.")),
    (MEASURE, Timing(FAILURE, 0.5)),
    (Sense("pi"), SENSED),
    (LookAround("pi", MEASURE.executable), Surroundings(SIGNS, None)),
    (TimeFuncs("pi", MEASURE.executable, "f", MeasureSettings(), Tolerance()), FUNCS),
    (OpenDevice("pi"), "boot-id"),
]


def answer(result: object) -> dict[str, Any]:
    """A worker's answer, its result unpacked, so that it can be spoiled."""
    sent = msgspec.msgpack.decode(encode(task_result(result, 1.0, {}, {}, None)))
    assert isinstance(sent, dict)
    return sent


def read(task: Task[Any], sent: object) -> object:
    reply = read_reply(msgspec.msgpack.encode(sent))
    assert isinstance(reply, TaskResult)
    return reply.read_result(task, {})


def check_sane(result: object) -> None:
    found = result.result if isinstance(result, Timing) else result
    if isinstance(found, Measurement):
        assert 0 < found.median_s < 1e7 and found.spread_s >= 0
        assert found.ratio is None or 0 < found.ratio < math.inf
    elif isinstance(found, MeasureFailure):
        assert found.message.isprintable()
    elif isinstance(found, str):
        assert found.isprintable() and len(found) <= 400
    if isinstance(result, Timing):
        assert 0 <= result.held_s <= 1e9 and result.alone.isprintable()


@pytest.mark.parametrize(("task", "result"), ANSWERS)
def test_a_sound_answer_is_kept(task: Task[Any], result: object) -> None:
    assert read(task, answer(result)) == result


@given(st.sampled_from(ANSWERS), st.data())
def test_any_answer_is_sane_or_the_workers_fault(told: tuple[Task[Any], object], data: st.DataObject) -> None:
    task, result = told
    sent = data.draw(spoiled(answer(result)))
    try:
        reply = read_reply(msgspec.msgpack.encode(on_the_wire(sent)))
        found = reply.read_result(task, {}) if isinstance(reply, TaskResult) else None
    except BadMessageError as error:
        assert error.message.isprintable() and len(error.message) < 700
        return
    check_sane(found)


@pytest.mark.slow
def test_any_damaged_answer_is_sane_or_the_workers_fault() -> None:
    sent = [(task, encode(task_result(result, 1.0, {}, {}, None))) for task, result in ANSWERS]
    refused = 0
    for seed in range(30_000):
        source = random.Random(seed)
        task, content = source.choice(sent)
        try:
            reply = read_reply(spoiled_bytes(source, content))
            check_sane(reply.read_result(task, {}) if isinstance(reply, TaskResult) else None)
        except BadMessageError as error:
            assert error.message.isprintable() and len(error.message) < 700
            refused += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
    assert 10_000 < refused < 30_000


CHANGES: list[Callable[[Measurement], Measurement]] = [
    lambda one: replace(one, repetitions_s=()),
    lambda one: replace(one, repetitions_s=(math.nan, 1.0)),
    lambda one: replace(one, repetitions_s=(5e-324, 1.0)),
    lambda one: replace(one, canary_s=(5e-324,)),
    lambda one: replace(one, factor=0.0),
    lambda one: replace(one, disturbed=(True,)),
    lambda one: replace(one, beside=replace(PAIR, repetitions_s=(0.5,))),
    lambda one: replace(one, beside=replace(PAIR, was_first=())),
    lambda one: replace(one, machine=replace(SIGNS, cores=-1)),
    lambda one: replace(one, machine=replace(SIGNS, hz=math.inf)),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_time_that_cannot_be_is_the_workers_fault(change: Callable[[Measurement], Measurement]) -> None:
    changed = change(MEASURED)
    for timing in (Timing(changed, 0.5), Timing(MEASURED, 0.5, references=(changed,))):
        with pytest.raises(BadMessageError):
            read(MEASURE, answer(timing))


def test_a_state_that_no_device_has_is_the_workers_fault() -> None:
    for wrong in (replace(SENSED, uptime_s=math.nan), replace(SENSED, free_bytes=1e299)):
        with pytest.raises(BadMessageError, match="What a process of the farm says of itself"):
            read(Sense("pi"), answer(wrong))


@pytest.mark.parametrize("content", [None, "text", b"", b"\xc1", b"\x91" * 5000, b"\xa1\xff", 7])
def test_what_is_no_message_is_the_workers_fault(content: object) -> None:
    with pytest.raises(BadMessageError):
        read_reply(content)


@pytest.mark.parametrize("name", ["//etc/evil", "a\0b", "x/../../evil", ".", "x" * 256, "x/" * 300])
def test_a_file_leaves_its_folder_by_no_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadMessageError, match="unexpected"):
        task_result(None, 0.0, {name: b"x"}, {}, None).unpack(tmp_path / "output")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("names", [("a", "a/b"), ("a/b", "a")])
def test_files_that_cannot_both_be_are_the_workers_fault(tmp_path: Path, names: tuple[str, str]) -> None:
    with pytest.raises(BadMessageError, match="in the place of a folder"):
        task_result(None, 0.0, dict.fromkeys(names, b"x"), {}, None).unpack(tmp_path / "output")


@pytest.mark.parametrize("run_id", ["../evil", "/tmp", "", "a" * 65, "a\n"])
def test_a_run_is_called_by_no_path(run_id: str) -> None:
    part = FilePart("run", FileKey("f", "0" * 64), 0, 1, False, b"x")
    with pytest.raises(BadMessageError, match="run_id"):
        decode(encode(msgspec.structs.replace(part, run_id=run_id)), FilePart)
    assert RemoteRun.__annotations__["run_id"] == FilePart.__annotations__["run_id"]


@pytest.mark.parametrize(
    "answered",
    [
        Timing(replace(MEASURED, kernel="other"), 0.5),
        Timing(replace(MEASURED, device="other"), 0.5),
        Timing(replace(MEASURED, clock=Clock.EMULATED), 0.5),
        Timing(MEASURED, 0.5, references=(replace(MEASURED, device="other"),)),
        Timing(replace(FAILURE, kernel="other"), 0.5),
        Timing(over_sizes({"a": MEASURED, "b": MEASURED}), 0.5),
    ],
)
def test_the_time_of_something_else_is_the_workers_fault(answered: Timing) -> None:
    check_asked(Timing(MEASURED, 0.5, references=(replace(MEASURED, kernel="reference"),)), "pi", "f", Clock.WALL, [""])
    with pytest.raises(BadMessageError, match=r"^A worker has"):
        check_asked(answered, "pi", "f", Clock.WALL, [""])


@pytest.mark.parametrize("error", [FarmError("The farm is full."), UsageError("No such input.")])
def test_what_a_worker_cannot_do_on_a_device_is_that_devices_trouble(error: SdkError) -> None:
    reply = read_reply(encode(task_error(error, 0.0)))
    assert isinstance(reply, TaskResult)
    with pytest.raises(DeviceTrouble, match=error.message):
        reply.read_result(MEASURE, {})
