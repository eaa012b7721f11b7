"""Whatever a device says of itself is kept if it can be true; else it is one failure of that device."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

import pytest
from hypothesis import given

from halide_autotune.devices.agent.protocol import read_reply
from halide_autotune.devices.agent.session import AgentSession
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.health.canary import CanaryWatch, time_canary
from halide_autotune.devices.health.card_state import read_card_report
from halide_autotune.devices.health.probe import DeviceProbe, DeviceSense, probe_device, sense_device
from halide_autotune.sdk.inventory.device_facts import facts_of, machine_of
from halide_autotune.targets.errors import DeviceError
from halide_autotune.targets.values.records import plain, record
from tests.device_replies import CANARY, CARDS, PROBE, SENSE, lines, spoiled


class Answering:
    """An agent that gives one answer to everything."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def ask_for(self, kind: type[Any], command: str, fields: object) -> Any:
        return read_reply(kind, self._answer, "The reply of pi5")


def answering(answer: object) -> AgentSession:
    return cast(AgentSession, Answering(answer))


def check_trouble(trouble: DeviceTrouble) -> None:
    assert trouble.kind is TroubleKind.PROTOCOL_ERROR
    assert trouble.message.isprintable() and len(trouble.message) < 500


def check_storable(found: DeviceProbe | DeviceSense) -> None:
    json.dumps(asdict(found), allow_nan=False).encode()
    assert all(text.isprintable() for text in _texts(plain(found)))


def _texts(value: object) -> list[str]:
    inner = list(value.values()) if isinstance(value, Mapping) else value if isinstance(value, list) else []
    return [text for item in inner for text in _texts(item)] + ([value] if isinstance(value, str) else [])


def test_a_sound_reply_is_kept() -> None:
    probed = probe_device(answering(PROBE))
    assert (probed.memory_bytes, len(probed.cores), probed.caches[0].size_bytes) == (8.3e9, 2, 65536)
    assert sense_device(answering(SENSE), ()).uptime_s == 5000.5
    assert time_canary(answering(CANARY), ()) == 0.0021


@given(spoiled(PROBE))
def test_any_probe_is_one_or_trouble(reply: object) -> None:
    try:
        probed = probe_device(answering(reply))
    except DeviceTrouble as trouble:
        check_trouble(trouble)
        return
    check_storable(probed)
    machine = machine_of(probed, ())
    assert record(type(machine))(plain(machine)) == machine, "an inventory takes it"
    assert all(not isinstance(fact, int) or abs(fact) < 2**63 for _, fact in facts_of(probed, "now"))


@given(spoiled(SENSE))
def test_any_reading_is_one_or_trouble(reply: object) -> None:
    try:
        check_storable(sense_device(answering(reply), ()))
    except DeviceTrouble as trouble:
        check_trouble(trouble)


@given(spoiled(CANARY))
def test_any_canary_can_be_compared_or_is_trouble(reply: object) -> None:
    try:
        time_s = time_canary(answering(reply), ())
    except DeviceTrouble as trouble:
        check_trouble(trouble)
        return
    watch = CanaryWatch([time_s])
    assert watch.is_steady([time_s]) and not watch.is_same_board([time_s * 2]) and watch.drift([1e6]) > -1


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"memory_bytes": 1e299}, "memory_bytes"),
        ({"memory_bytes": -1}, "memory_bytes"),
        ({"cores": [{"core": -1, "governor": None, "max_hz": None}]}, "core"),
        ({"cores": [{"core": 0, "governor": None, "max_hz": 1e300}]}, "max_hz"),
        ({"caches": [{"level": 1, "type": "Data", "size_bytes": 2**60, "shared_cores": []}]}, "size_bytes"),
        ({"temperature_zones": [{"zone": 0, "type": None, "celsius": 1e300}]}, "celsius"),
        ({"kernel": []}, "kernel"),
    ],
)
def test_what_no_device_has_is_named(change: dict[str, object], key: str) -> None:
    with pytest.raises(DeviceTrouble, match=f"^The reply of pi5: key '[^']*{key}'"):
        probe_device(answering(PROBE | change))


def test_a_canary_of_next_to_nothing_is_trouble() -> None:
    with pytest.raises(DeviceTrouble, match="time_s"):
        time_canary(answering({"time_s": 5e-324}), ())


def test_a_thermometer_that_is_none_costs_no_device() -> None:
    reply = PROBE | {"temperature_zones": [{"zone": 3, "type": "broken", "celsius": 1.8446744073709552e16}]}
    assert probe_device(answering(reply)).temperature_zones[0].type == "broken"


@given(spoiled(CARDS))
def test_any_card_is_one_or_trouble(events: object) -> None:
    if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
        return
    try:
        cards = read_card_report(lines(*events), "pi5")
    except DeviceError as error:
        assert error.message.isprintable() and len(error.message) < 1000
        return
    assert all(card.describe().isprintable() and len(card.describe()) < 1000 for card in cards)
