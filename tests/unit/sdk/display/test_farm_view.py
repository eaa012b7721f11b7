"""A farm's state as people read it."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace

import pytest
from rich.console import Console

from halide_autotune.autotune_loop.farm.device import DeviceFailure, DeviceReport, FarmDevice
from halide_autotune.autotune_loop.farm.state import (
    FarmDeviceState,
    FarmRun,
    FarmRunState,
    FarmState,
    FarmWorkerState,
    PutOutWorker,
)
from halide_autotune.sdk.display.farm_view import farm_fields, farm_text

_NOW_S = 1_700_000_000.0
_ANA = FarmRunState(FarmRun("11aa", "c1", "ana@laptop", "blur", "high", 12.0, 0.1, under_way=3), 0, 0.0, 2, _NOW_S, 0.1)
_BOB = FarmRunState(
    FarmRun("22bb", "c2", "bob@desk", "[red]corner", "normal", 30.0, 0.1, under_way=4), 3, 95.0, 0, _NOW_S, 0.1
)


@pytest.fixture(autouse=True)
def _at_a_fixed_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(time=lambda: _NOW_S)
    monkeypatch.setattr("halide_autotune.sdk.display.farm_view.time", clock)


def _state() -> FarmState:
    return FarmState(
        (
            FarmWorkerState("lab1", "m1", "tls://192.168.1.5:40000", 4, 2),
            FarmWorkerState("lab2", "m2", "tls://b:1", 0, 0),
        ),
        (
            FarmDeviceState(
                device=FarmDevice("pi5", "arm64", "ssh", ("desk",)),
                worker="lab2",
                report=DeviceReport(
                    run_id="11aa",
                    task="measure",
                    busy_s=4.0,
                    is_held=True,
                    users=("11aa", "22bb"),
                    failures=(DeviceFailure(_NOW_S - 130, "22bb", "pi5 has ended the connection."),),
                ),
                waiting=("22bb", "22bb", "11aa"),
            ),
            FarmDeviceState(FarmDevice("pi6", "arm64", "ssh"), "lab2", DeviceReport(), ()),
        ),
        (_ANA, _BOB),
    )


def shown(state: FarmState) -> str:
    console = Console(file=io.StringIO(), width=200, markup=False)
    console.print(farm_text("tls://lab1:8786", state))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_who_measures_what_and_who_comes_next_is_told() -> None:
    text = shown(_state())
    lines = {line.split()[0]: line for line in reversed(text.splitlines()) if line.strip()}
    assert "2 of 4 in use" in lines["lab1"] and "pi5, pi6" in lines["lab2"]
    assert "timing a schedule for ana@laptop (blur), 4.0 s" in lines["pi5"]
    assert "2 of bob@desk ([red]corner), 1 of ana@laptop (blur)" in text, "what users call things is no markup"
    assert "under way" in lines["11aa"] and "3 before it, in about 1 min" in lines["22bb"]
    assert "pi5 on lab2, 2 min 10 s ago: pi5 has ended the connection." in text
    assert "free" in lines["pi6"]


def test_an_empty_farm_says_how_to_fill_it_and_json_is_complete() -> None:
    assert "no workers yet. Start one with `sdk farm worker`" in shown(FarmState((), (), ()))
    fields = json.loads(json.dumps(farm_fields("tls://lab1:8786", _state())))
    assert [device["state"] for device in fields["devices"]] == ["busy", "free"]
    assert fields["devices"][0]["labels"] == ["desk"] and fields["runs"][1]["position"] == 3


def test_who_was_put_out_is_told_with_the_reason() -> None:
    out = PutOutWorker("lab3", "tls://192.168.1.7:40001", "it does not answer at tls://192.168.1.7:40001", _NOW_S - 8)
    state = FarmState((), (), (), (out,))
    text = shown(state)
    assert "has no workers. Start one with" in text
    assert "lab3, 8.0 s ago: it does not answer at tls://192.168.1.7:40001" in text
    fields = json.loads(json.dumps(farm_fields("tls://lab1:8786", state)))
    assert fields["put_out"][0]["name"] == "lab3" and fields["put_out"][0]["reason"] == out.reason
