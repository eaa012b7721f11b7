"""What a farm's worker says of a machine that lacks something."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.candidate import Origin, SearchPoint
from halide_autotune.autotune_loop.execute.messages import (
    FilePart,
    MissingInput,
    RemoteRun,
    TaskMessage,
    TaskResult,
    decode,
    encode_run,
    encode_task,
)
from halide_autotune.autotune_loop.execute.tasks.build_tasks import Search
from halide_autotune.autotune_loop.execute.worker import FarmWorker
from halide_autotune.autotune_loop.specification.tuning_task import TuningTask
from halide_autotune.devices.device import Device
from halide_autotune.devices.local.cores import plan_cores
from halide_autotune.devices.remote.transport import AgentTransport
from halide_autotune.targets.errors import ToolchainError
from tests.generator_projects import cpp_project
from tests.run_specs import make_context, make_spec


def _no_device(device: Device) -> AgentTransport:
    raise AssertionError(f"{device.name} is not there")


@pytest.mark.toolchain
def test_a_builder_without_a_compiler_is_named(tmp_path: Path) -> None:
    spec = make_spec(TuningTask(cpp_project(tmp_path / "home"), "filter"), profile="x86-64")
    cores = plan_cores(frozenset(os.sched_getaffinity(0)), 0)
    context = make_context(spec, (), tmp_path / "here", cores, dict(os.environ))
    content, files = encode_run("run", context)
    bare = replace(
        context.workspace, environment={}, cache_folder=tmp_path / "there" / "cache", work_folder=tmp_path / "there"
    )
    weights = tmp_path / "used.weights"
    weights.write_bytes(b"")
    task = Search(tmp_path / "out", 0, SearchPoint(Origin.GREEDY, 0, 1, 100, weights), "kernel")
    message = decode(encode_task("run", task, task.inputs()), TaskMessage)
    files |= {key: path for path, key in task.inputs().items()}
    with contextlib.closing(FarmWorker("lab", bare, [], 1, _no_device)) as worker:
        worker.receive_run(decode(content, RemoteRun))
        while isinstance(reply := worker.perform(message, "here"), MissingInput):
            assert reply.key is not None
            sent = files[reply.key].read_bytes()
            worker.receive_file(FilePart("run", reply.key, 0, len(sent), executable=False, content=sent))
        assert isinstance(reply, TaskResult)
        with pytest.raises(ToolchainError, match=r"On the farm's worker lab: A C\+\+ compiler is needed") as caught:
            reply.read_result(task, task.inputs())
    assert "apt-get install g++" in caught.value.next_step
