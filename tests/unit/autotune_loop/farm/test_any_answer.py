"""Whatever a farm's processes say of themselves is kept if it can be true, and costs nobody else anything."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given

from halide_autotune.autotune_loop.farm.device import (
    ANNOUNCEMENT,
    Announcement,
    DeviceFailure,
    DeviceReport,
    FarmDevice,
)
from halide_autotune.autotune_loop.farm.ledger import FarmLedger
from halide_autotune.autotune_loop.farm.state import (
    FarmDeviceState,
    FarmRun,
    FarmRunState,
    FarmState,
    FarmWorkerState,
    read_state,
)
from halide_autotune.autotune_loop.farm.told import read_told
from halide_autotune.autotune_loop.farm.worker_registry import BeatAnswer, read_workers
from halide_autotune.devices.inventory.inventory import DeviceMachine
from halide_autotune.sdk.display.farm_view import farm_fields
from halide_autotune.targets.errors import FarmError
from tests.device_replies import JUNK, on_the_wire, spoiled

PI = FarmDevice("pi5", "arm64", "ssh", ("desk",), core_count=2, machine=DeviceMachine(parallelism=4))
ANNOUNCED = Announcement("lab1", "aabb", 0, PI)
REPORT = DeviceReport("11aa", "measure", 4.0, True, ("11aa",), (DeviceFailure(1.7e9, "22bb", "It is gone."),))
RUN = FarmRun("11aa", "c1", "ana@laptop", "blur", "high", 12.0, 0.1, under_way=3)
STATE = FarmState(
    (FarmWorkerState("lab1", "aabb", "tls://b:1", 2, 1),),
    (FarmDeviceState(PI, "lab1", REPORT, ("11aa",)),),
    (FarmRunState(RUN, 1, 2.5, 0, 1.7e9, 0.5),),
)
BEAT: dict[str, Any] = {
    "floor_s": 3.0,
    "version": 2,
    "is_known": True,
    "workers": {"tls://b:1": msgspec.to_builtins(ANNOUNCED)},
    "position": 3,
    "start_s": 1.5,
}


def check_shown(error: FarmError) -> None:
    assert error.message.isprintable() and len(error.message) < 600


@given(spoiled(msgspec.to_builtins(STATE)))
def test_any_state_can_be_shown_or_is_an_error(told: object) -> None:
    try:
        state = read_state(msgspec.msgpack.encode(on_the_wire(told)))
    except FarmError as error:
        check_shown(error)
        return
    text = json.dumps(farm_fields("tls://lab1:8786", state), allow_nan=False, ensure_ascii=False)
    assert text.isprintable()


@given(spoiled(BEAT))
def test_any_answer_to_a_beat_is_read_or_is_an_error(told: object) -> None:
    try:
        answer = read_told(BeatAnswer, told)
    except FarmError as error:
        check_shown(error)
        return
    assert abs(answer.floor_s) <= 1e12
    for worker in read_workers(answer.workers or {}).values():
        assert worker.worker.isprintable() and worker.build_slots >= 0
        assert worker.device is None or (worker.device.machine.parallelism or 1) <= 65536


def test_a_worker_that_says_what_cannot_be_costs_only_itself() -> None:
    sound = msgspec.to_builtins(ANNOUNCED)
    wrong = {**sound, "device": {**sound["device"], "machine": {"parallelism": 10**12}}}
    assert read_workers({"tls://a:1": wrong, "tls://b:1": sound, "tls://c:1": 3}) == {"tls://b:1": ANNOUNCED}


@given(spoiled({"announced": msgspec.to_builtins(ANNOUNCED), "report": msgspec.to_builtins(REPORT)}), JUNK)
def test_a_scheduler_serves_runs_whatever_a_worker_says(told: object, other: object) -> None:
    said = told if isinstance(told, dict) else {}
    workers = {
        "tls://a:1": _worker(said.get("announced"), said.get("report")),
        "tls://b:1": _worker(msgspec.to_builtins(ANNOUNCED), msgspec.to_builtins(REPORT)),
        "tls://c:1": _worker(other, other),
    }
    ledger = FarmLedger()
    ledger._scheduler = SimpleNamespace(workers=workers, clients={})
    for address in workers:
        ledger.add_worker(ledger._scheduler, address)
    answer = asyncio.run(ledger.beat(msgspec.to_builtins(RUN), -1))
    assert answer["position"] == 0, "the sound one times a schedule of the run"
    state = read_state(asyncio.run(ledger.state()))
    assert "pi5" in [row.device.name for row in state.devices]


def _worker(announced: object, report: object) -> SimpleNamespace:
    return SimpleNamespace(name="dask", extra={ANNOUNCEMENT: announced}, metrics={ANNOUNCEMENT: report}, processing={})


@pytest.mark.parametrize("told", [None, "text", b"", b"\xc1", b"\x91" * 5000, b"\xa1\xff", 3])
def test_what_is_no_state_is_an_error(told: object) -> None:
    with pytest.raises(FarmError):
        read_state(told)
