"""Which devices a run takes, what workers are told, and what a user hears of the queue."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from halide_autotune.autotune_loop.events import Event, FarmQueue
from halide_autotune.autotune_loop.execute.messages import RemoteRun, decode, encode_run
from halide_autotune.autotune_loop.farm.device import FarmDevice, served_devices
from halide_autotune.autotune_loop.farm.use import DeviceWish
from halide_autotune.autotune_loop.farm.worker_registry import QueueWatch
from halide_autotune.autotune_loop.specification.build_limits import BuildLimits
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.specification.run_context import RunContext
from halide_autotune.autotune_loop.specification.tuning_task import TuningTask
from halide_autotune.autotune_loop.specification.workspace import Workspace
from halide_autotune.devices.device import Clock
from halide_autotune.devices.inventory.inventory import DeviceMachine, InventoryDevice
from halide_autotune.devices.local.cores import plan_cores
from halide_autotune.devices.remote_place import ConnectionSettings, RemotePlace, SshAddress
from halide_autotune.devices.timing.measure_settings import KernelInputs
from tests.run_specs import make_spec, make_task

PI = FarmDevice("pi.1", "arm64", "ssh", ("fast", "desk"), Clock.WALL, 2, DeviceMachine(parallelism=4))


def test_a_device_is_the_same_after_its_message() -> None:
    fields = msgspec.to_builtins(PI)
    assert msgspec.convert(fields, FarmDevice) == PI
    assert msgspec.convert({**fields, "labels": list(PI.labels)}, FarmDevice) == PI


@pytest.mark.parametrize(
    ("words", "is_taken"),
    [
        ((), True),
        (("pi",), True),
        (("pi.1",), True),
        (("pi.2",), False),
        (("label:desk",), True),
        (("label:slow", "pi.1"), True),
        (("label:slow",), False),
        (("desk",), False),
    ],
)
def test_names_and_labels(words: tuple[str, ...], is_taken: bool) -> None:
    assert DeviceWish("arm64", words).takes(PI) is is_taken


def test_another_profile_or_clock_is_not_taken() -> None:
    assert not DeviceWish("x86-64", ("pi",)).takes(PI)
    assert not DeviceWish("arm64", ("pi",), Clock.EMULATED).takes(PI)


def test_slots_are_devices_of_their_own() -> None:
    entry = InventoryDevice("pi", "arm64", RemotePlace(SshAddress("pi"), cores=(0, 1, 2, 3)), ("desk",), slots=2)
    served = served_devices([entry])
    assert [each.announced.name for each in served] == ["pi.1", "pi.2"]
    assert [each.announced.core_count for each in served] == [2, 2]
    assert all("pi" not in str(msgspec.to_builtins(each.announced)["machine"]) for each in served)


def test_a_message_about_a_run_keeps_the_users_machine_to_itself(tmp_path: Path) -> None:
    secret = "a word that nobody else may read"
    connections = ConnectionSettings(tmp_path, tmp_path, (), tmp_path, "ann@here", tmp_path, (("pi", secret),))
    generator = tmp_path / "blur.py"
    options = RunOptions.of(
        inventory=str(tmp_path / "lab.toml"),
        farm_certificates=str(tmp_path),
        weights=str(tmp_path / "w.weights"),
        incumbents={"": tmp_path / "now.h"},
        input_files={"input": tmp_path / "input.raw"},
    )
    cores = plan_cores(frozenset(os.sched_getaffinity(0)), 0)
    context = RunContext(
        spec=make_spec(make_task("blur", generator), options=options),
        devices=(),
        inputs=options.inputs,
        limits=BuildLimits(),
        workspace=Workspace(tmp_path, tmp_path, {"PASSWORD": secret}, tmp_path, cores, connections, None, tmp_path),
    )
    generator.write_text("import halide")
    (tmp_path / "input.raw").write_text("pixels")
    message, files = encode_run("run", context)
    assert secret.encode() not in message
    assert str(tmp_path).encode() not in message
    assert sorted(path.name for path in files.values()) == ["blur.py", "input.raw"]
    run = decode(message, RemoteRun)
    assert (run.parallelism, run.threads, run.profile) == (4, 4, context.profile)
    here = {key: Path("/srv") / key.name for key in files}
    assert decode(run.tuning_tasks, tuple[TuningTask, ...], here.__getitem__)[0].reference.file == Path("/srv/blur.py")
    assert decode(run.inputs, KernelInputs, here.__getitem__).files == {"input": Path("/srv/input.raw")}


def test_waiting_is_told_after_a_while_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    clock = SimpleNamespace(monotonic=lambda: now_s)
    monkeypatch.setattr("halide_autotune.autotune_loop.farm.worker_registry.time", clock)
    events: list[Event] = []
    watch = QueueWatch(events.append)
    for position in (3, 3, 3, 3, 3, 3, 2, 0, 0, 1, 0):
        watch.stands_at(position, 2.0 * position)
        now_s += 0.5
    assert events == [FarmQueue(3, 6.0), FarmQueue(2, 4.0), FarmQueue(0, 0.0)]
    assert isinstance(events[0], FarmQueue)
    assert events[0].text == "Waiting for a device of the farm: 3 before this run, about 6 s."
