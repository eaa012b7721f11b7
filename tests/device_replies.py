"""Replies as devices and farms give them, for tests that spoil them."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

NONCE = "0123456789abcdef"

CORE: dict[str, Any] = {"core": 0, "governor": "ondemand", "max_hz": 2.4e9, "capacity": 1024}
ZONE: dict[str, Any] = {"zone": 0, "type": "cpu-thermal", "celsius": 45.5}
PROBE: dict[str, Any] = {
    "kernel": "6.1.0-rpi7",
    "machine": "aarch64",
    "os": "Debian GNU/Linux 12",
    "android": False,
    "emulated": False,
    "cpu_model": "Raspberry Pi 5",
    "memory_bytes": 8.3e9,
    "cores": [CORE, {**CORE, "core": 1}],
    "caches": [{"level": 1, "type": "Data", "size_bytes": 65536, "shared_cores": [0, 1]}],
    "temperature_zones": [ZONE],
    "dsp": {"nodes": [{"path": "/dev/adsprpc-smd", "usable": True}], "signature_folder": None},
    "boot": "11111111-2222",
}
SENSE: dict[str, Any] = {
    "boot": "11111111-2222",
    "uptime_s": 5000.5,
    "load_1m": 0.25,
    "free_bytes": 1e10,
    "cores": [CORE],
    "temperatures": [ZONE],
}
CANARY: dict[str, Any] = {"time_s": 0.0021}
LEASE: dict[str, Any] = {"slot": 0, "owner": "ana@desk", "since_s": 12.5, "expires_in_s": 107.5}
LEASES: dict[str, Any] = {"leases": [LEASE, {**LEASE, "slot": 1}]}
OPENED: dict[str, Any] = {"boot": "11111111-2222", "architecture": "aarch64"}
LOOK: dict[str, Any] = {"free_bytes": 1e10, "file": {"size_bytes": 4096, "sha256": "ab" * 32}}
RAN: dict[str, Any] = {
    "exit_code": 0,
    "signal": 0,
    "timed_out": False,
    "duration_s": 0.75,
    "canary_before_s": 0.0021,
    "canary_after_s": None,
    "boot": "11111111-2222",
}
ARRIVED: dict[str, Any] = {"kind": "checksum", "message": "It is short.", "size_bytes": 12, "free_bytes": 0.0}

SIGNS: dict[str, Any] = {
    "event": "machine",
    "duration_s": 0.5,
    "cores": 2,
    "busy_s": 0.75,
    "own_s": 0.5,
    "stolen_s": 0.0,
    "waiting_s": None,
    "has_priority": False,
    "hz": 1.2e9,
    "max_hz": 2.4e9,
    "hottest_c": 61.5,
}
TIMED: dict[str, Any] = {
    "event": "timed",
    "repetitions_s": [0.001, 0.0011],
    "disturbed": [False, True],
    "beside": "yardstick",
    "beside_s": [0.002, 0.002],
    "beside_disturbed": [False, False],
    "beside_first": [True, False],
    "stopped_by": "precision",
}
COMPARED: dict[str, Any] = {
    "event": "compared",
    "accepted": False,
    "output": "out$1",
    "computed": "64x48",
    "reference": "64x50",
    "common": "64x48",
    "mismatches": 3,
    "elements": 3072,
    "max_absolute_error": 0.5,
    "first_mismatch": [3, 4],
    "expected": 1.5,
    "actual": 2.0,
}
FAILED: dict[str, Any] = {"event": "error", "kind": "wrong_output", "message": "The output differs."}
BUSIEST: dict[str, Any] = {"event": "busiest", "pid": 42, "name": "cc1plus", "is_own_users": False, "busy_s": 0.25}
FUNC: dict[str, Any] = {"name": "blur", "call_s": 1e-3, "threads": 1.9, "peak_bytes": 4096, "stack_bytes": 0}
FUNCS: dict[str, Any] = {"event": "funcs", "calls": 250, "call_s": 4e-3, "looks": 900, "funcs": [FUNC]}
COUNTED_FUNC: dict[str, Any] = {
    "name": "blur",
    "within": "output",
    "loaded": {"count": 96, "values": 768, "bytes": 1536},
    "stored": {"count": 32, "values": 256, "bytes": 512},
    "points": 256,
    "realizations": 1,
    "extents": [32, 8],
    "parallel_loops": 0,
    "tasks": 0,
}
COUNTS: dict[str, Any] = {"event": "counts", "funcs": [COUNTED_FUNC]}
CARD: dict[str, Any] = {
    "event": "card",
    "name": "Some card",
    "major": 8,
    "minor": 6,
    "multiprocessors": 20,
    "shared_memory_per_block_bytes": 49152,
    "shared_memory_per_multiprocessor_bytes": 102400,
    "threads_per_block": 1024,
    "threads_per_multiprocessor": 1536,
    "blocks_per_multiprocessor": 16,
    "registers_per_block": 65536,
    "memory_bytes": 8589934592,
    "processes": 2,
    "busy_percent": 40,
}
CARDS: list[dict[str, Any]] = [{"event": "driver", "version": 12040}, CARD, {"event": "done"}]

# What no device has; each of them has once been taken for a value somewhere.
JUNK: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([None, True, -1, 0, 2**63, 10**400, -(10**400), 1e299, 5e-324, "", "\x1b[2J\ud800", "7" * 5000])
    | st.floats()
    | st.integers()
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def spoiled(draw: st.DrawFn, sound: Any) -> Any:
    """The same with junk in one to three places, wherever they are, or without what was there."""
    value = sound
    for _ in range(draw(st.integers(1, 3))):
        value = _spoiled_once(draw, value)
    return value


def _spoiled_once(draw: st.DrawFn, value: Any) -> Any:
    if isinstance(value, Mapping) and value and draw(st.integers(0, 9)):
        key = draw(st.sampled_from(sorted(value)))
        others = {name: item for name, item in value.items() if name != key}
        return others | {key: _spoiled_once(draw, value[key])} if draw(st.integers(0, 4)) else others
    if isinstance(value, list) and value and draw(st.integers(0, 4)):
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], _spoiled_once(draw, value[place]), *value[place + 1 :]]
    return draw(JUNK)


def on_the_wire(told: object) -> Any:
    """The nearest that a message of the farm can hold: no half of a surrogate pair, no long integer."""
    text = json.dumps(told, default=str, ensure_ascii=False).encode("utf-8", "replace").decode()
    return json.loads(text, parse_int=lambda number: max(-(2**63), min(int(number), 2**64 - 1)))


def lines(*events: Mapping[str, Any]) -> str:
    """What a runner prints."""
    return "".join(json.dumps(event) + "\n" for event in events)


def agent_line(event: str, **fields: object) -> bytes:
    """A line of the device's agent."""
    text = json.dumps({"event": event, **fields}).encode()
    return b"@%s %08x %s\n" % (NONCE.encode(), zlib.crc32(text), text)


def agent_output(text: str) -> bytes:
    """A line of the device's agent with a piece of a program's output."""
    return agent_line("output", data=base64.b64encode(text.encode()).decode())
