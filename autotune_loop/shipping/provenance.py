"""Where a shipped schedule comes from: the facts in its comment, its constants and the manifest."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime

from autotune_loop.shipping.run_schedule import RunSchedule
from autotune_loop.store.run_record import RunRecord
from devices.device import Clock

Fact = str | int | float | bool | None
# Every fact by the name of its constant. All text is printable ASCII without quotes and backslashes.
Provenance = Mapping[str, Fact]

# Characters that need no escape in comments and strings of C++ and Python are the others.
_UNSAFE = re.compile(r"[^ -!#-\[\]-~]")
_LOCAL_PATH = re.compile(r"^(?:[A-Za-z]:)?(?:.*[\\/])(?=[^\\/]*$)")
_DEVICE_WORDS = {
    "local": "the machine that tuned it",
    "qemu": "the emulator QEMU",
    "hexagon-sim": "Qualcomm's simulator hexagon-sim",
}


def make_provenance(run: RunSchedule, algorithm_hash: str, sdk_version: str) -> Provenance:
    """The facts of a run's schedule.

    Times are medians in milliseconds; the default's are None if it has none. `tuned_low_ms` and `tuned_high_ms` are the
    fastest and the slowest process of the play-off, which `confirmed` says was held. `date` is that of the last
    measurement, in UTC.
    """
    profile, made_with, times = run.record.spec.profile, run.record.made_with, run.times
    tuned, default = times.tuned, times.default
    facts: dict[str, Fact] = {
        "generator": run.task.generator_name,
        "parameters": " ".join(f"{key}={value}" for key, value in shipped_parameters(run.task.parameters).items()),
        "target_profile": profile.name,
        "halide_target": profile.halide_target,
        "halide_version": made_with.halide_version,
        "autoscheduler": profile.autoscheduler.name,
        "algorithm_hash": algorithm_hash,
        "device": _device(run.record),
        "device_fingerprint": _fingerprint(run.record),
        "clock": times.clock,
        "default_ms": None if default is None else default.median_ms,
        "default_spread_ms": None if default is None else default.spread_ms,
        "tuned_ms": tuned.median_ms,
        "tuned_spread_ms": tuned.spread_ms,
        "tuned_low_ms": tuned.low_ms,
        "tuned_high_ms": tuned.high_ms,
        "confirmed": times.confirmed,
        "verdict": times.verdict,
        "samples": times.samples,
        "weights_sha256": times.weights_sha256 or made_with.start_weights_sha256,
        "date": datetime.fromtimestamp(times.tuned_unix_s, UTC).date().isoformat(),
        "sdk_version": sdk_version,
    }
    return {name: _presentable(fact) for name, fact in facts.items()}


def shipped_parameters(parameters: Mapping[str, str]) -> dict[str, str]:
    """The generator's parameters, sorted; of a path only the file's name, which tells nothing about the machine."""
    return {_printable(key): _printable(_LOCAL_PATH.sub("", value)) for key, value in sorted(parameters.items())}


def provenance_comment(facts: Provenance) -> list[str]:
    """Lines for the top of a file."""
    default = "has no time"
    if facts["default_ms"] is not None:
        how = "in turns with it" if facts["confirmed"] else "not in turns with it"
        default = f"{facts['default_ms']:.4g} ms +- {facts['default_spread_ms']:.2g}, {how}"
    tuned = f"{facts['tuned_ms']:.4g} ms +- {facts['tuned_spread_ms']:.2g}, median and spread"
    between = f"processes took {facts['tuned_low_ms']:.4g} to {facts['tuned_high_ms']:.4g} ms"
    return [
        f"generator     {facts['generator']}, parameters: {facts['parameters'] or 'none'}",
        f"algorithm     {facts['algorithm_hash']}",
        f"target        {facts['target_profile']}: {facts['halide_target']}",
        f"made with     Halide {facts['halide_version']}, {facts['autoscheduler']}, SDK {facts['sdk_version']}",
        f"device        {facts['device']}, {facts['device_fingerprint']}",
        f"time          {tuned}; {between}, {Clock.words_of(str(facts['clock']))}",
        f"default       {default}",
        f"play-off      {facts['verdict'] or 'none'}",
        f"samples       {facts['samples']} timed",
        f"weights       {facts['weights_sha256']}",
        f"date          {facts['date']}",
    ]


def _presentable(fact: Fact) -> Fact:
    match fact:
        case str():
            return _printable(fact)
        case float():
            return float(f"{fact:.6g}")
        case _:
            return fact


def _printable(text: str) -> str:
    """`text` with a question mark for every character that would need an escape in a comment or a string."""
    return _UNSAFE.sub("?", text)


def _device(record: RunRecord) -> str:
    """The kind of device, in words; names of devices and machines stay private."""
    names = record.made_with.devices
    boards = "one board" if len(names) <= 1 else f"{len(names)} boards"
    words = _DEVICE_WORDS.get(names[0], boards) if len(names) == 1 else boards
    return f"{words}, {record.spec.parallelism} threads"


def _fingerprint(record: RunRecord) -> str:
    """A hash of the kind of hardware; equal for equal kinds."""
    profile, made_with = record.spec.profile, record.made_with
    facts = [_device(record), profile.name, profile.halide_target, made_with.clock, str(record.spec.parallelism)]
    facts += [json.dumps(profile.to_dict()["machine"]), made_with.processor]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
