"""A farm's worker times a schedule at every size, on a device over an agent; all that it is told comes as messages."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.autotune_loop.execute.device_session import ReferenceRun, Timing
from halide_autotune.autotune_loop.execute.local_executor import LocalExecutor
from halide_autotune.autotune_loop.execute.messages import (
    FilePart,
    MissingInput,
    RemoteRun,
    TaskMessage,
    TaskResult,
    decode,
    encode,
    encode_run,
    encode_task,
    read_reply,
)
from halide_autotune.autotune_loop.execute.tasks.build_tasks import BuildReference, BuiltReference, Link
from halide_autotune.autotune_loop.execute.tasks.measure_tasks import Measure, PrepareReference
from halide_autotune.autotune_loop.execute.tasks.task import FileKey, Task
from halide_autotune.autotune_loop.execute.worker import FarmWorker
from halide_autotune.autotune_loop.farm.device import FarmDevice, ServedDevice
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.devices.timing.measure_settings import KernelInputs, MeasureSettings, Tolerance
from halide_autotune.devices.timing.measurement import Measurement
from halide_autotune.devices.timing.measurement_at_sizes import medians_by_size_s
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.build.executable import Executable
from halide_autotune.targets.process.content_cache import ContentCache
from tests.any_speed import any_speed_is_usual
from tests.contract.farm_user import context_for
from tests.contract.local_device import local_device, local_transport

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

_LIMIT_S = 240.0
MAIN, LARGER = "input=192x96x3 output=192x96x3", "input=384x192x3 output=384x192x3"
INPUTS = KernelInputs(
    sizes={"input": "192x96x3", "output": "192x96x3"}, also_sizes=("input=384x192x3 output=384x192x3",)
)


@pytest.fixture
def context(settings: Settings, tmp_path: Path) -> RunContext:
    made = context_for(tmp_path)
    here = replace(made.workspace, cache_folder=settings.cache_folder, environment=settings.environment)
    return replace(made, spec=replace(made.spec, tasks=made.spec.tasks[:1]), inputs=INPUTS, workspace=here)


@pytest.fixture
def executable(context: RunContext, tmp_path: Path) -> Executable:
    with contextlib.closing(LocalExecutor(context, 1)) as executor:
        built = executor.submit(BuildReference(tmp_path / "run" / "kernel", 0, "kernel")).result(_LIMIT_S)
        assert isinstance(built, BuiltReference)
        return executor.submit(Link(tmp_path / "run", "batch", (built.kernel,))).result(_LIMIT_S)


def performed(worker: FarmWorker, task: Task[Any]) -> Any:
    """What the worker answers, with the files that it asks for."""
    message = decode(encode_task("run", task, task.inputs()), TaskMessage)
    paths: dict[FileKey, Path] = {key: path for path, key in task.inputs().items()}
    while isinstance(reply := read_reply(encode(worker.perform(message, "here"))), MissingInput):
        assert reply.key is not None
        content = paths[reply.key].read_bytes()
        worker.receive_file(FilePart("run", reply.key, 0, len(content), executable=True, content=content))
    assert isinstance(reply, TaskResult)
    return reply.read_result(task, task.inputs())


def test_a_worker_times_at_every_size(
    context: RunContext, executable: Executable, cache: ContentCache, tmp_path: Path
) -> None:
    device = local_device(tmp_path / "device")
    worker = FarmWorker(
        "lab",
        replace(context.workspace, work_folder=tmp_path / "worker"),
        [ServedDevice(FarmDevice(device.name, "x86-64", "ssh"), device)],
        0,
        lambda served: local_transport(tmp_path / "device", cache),
    )
    with contextlib.closing(worker), any_speed_is_usual():
        content, _ = encode_run("run", context)
        worker.receive_run(decode(content, RemoteRun))
        run = ReferenceRun(executable, "kernel", "reference.raw", 60.0)
        settings = MeasureSettings(max_time_s=0.02)
        prepared = performed(worker, PrepareReference(device.name, run, settings))
        assert isinstance(prepared, Timing) and isinstance(prepared.result, Measurement)
        timing = performed(worker, Measure(device.name, executable, "kernel", settings, run, Tolerance()))
    assert isinstance(timing.result, Measurement) and timing.result.output_checked
    (reference,) = timing.references
    for measurement in (prepared.result, timing.result, reference):
        times_s = medians_by_size_s(measurement)
        assert list(times_s) == [MAIN, LARGER]
        assert measurement.median_s == pytest.approx((times_s[MAIN] * times_s[LARGER]) ** 0.5)
