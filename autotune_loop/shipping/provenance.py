"""Where a shipped schedule comes from: the facts in its comment, its constants and the manifest."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime

from halide_autotune.autotune_loop.candidate import Origin
from halide_autotune.autotune_loop.parameters.space import set_text
from halide_autotune.autotune_loop.shipping.run_winner import RunWinner
from halide_autotune.autotune_loop.store.published import Published
from halide_autotune.autotune_loop.store.run_record import RunRecord
from halide_autotune.devices.device import Clock

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


def make_provenance(run: RunWinner, algorithm_hash: str, sdk_version: str, size: str = "") -> Provenance:
    """The facts of a run's schedule, or of the parameters that it has tuned.

    Times are medians in milliseconds, and `tuned_from` says of what; the default's are None if it has none.
    `tuned_low_ms` and `tuned_high_ms` are the fastest and the slowest process of the play-off, and `speed_up_low` and
    `speed_up_high` its interval; None if the result is not `confirmed`. `speed_up_than` is what it was faster than.
    `date` is that of the last measurement, in UTC.
    `size` is there only for a schedule that is for one size, and its times are of that size.
    `no_default` is there only where the default has no time, `default_search` only where a cheaper search than the full
    one gave it, `tuned_parameters` and `default_parameters` only where parameters were tuned, and `weights_sha256` only
    where they were not. `sizes` is there only where there are several; the other times are then geometric means of
    those that it has.
    """
    profile, made_with, recorded = run.record.spec.profile, run.record.made_with, run.facts
    tuned, default, speed_up = recorded.published.tuned, recorded.published.default, recorded.published.speed_up
    assert tuned is not None, "only an incumbent may have no time, and it does not ship"
    low_ms, high_ms = tuned.range_ms or (None, None)
    facts: dict[str, Fact] = {
        "generator": run.task.generator_name,
        "parameters": " ".join(f"{key}={value}" for key, value in shipped_parameters(run.task.parameters).items()),
        "target_profile": profile.name,
        "halide_target": profile.halide_target,
        "halide_version": made_with.halide_version,
        "autoscheduler": profile.autoscheduler.name if run.path.suffix == ".h" else "its own schedule",
        "algorithm_hash": algorithm_hash,
        "device": _device(run.record),
        "device_fingerprint": _fingerprint(run.record),
        "clock": recorded.clock,
        "default_ms": None if default is None else default.median_ms,
        "default_spread_ms": None if default is None else default.spread_ms,
        "tuned_ms": tuned.median_ms,
        "tuned_spread_ms": tuned.spread_ms,
        "tuned_low_ms": low_ms,
        "tuned_high_ms": high_ms,
        "tuned_from": tuned.words,
        "speed_up": None if speed_up is None else speed_up.times,
        "speed_up_low": None if speed_up is None else speed_up.low,
        "speed_up_high": None if speed_up is None else speed_up.high,
        "speed_up_than": None if speed_up is None else speed_up.than,
        "confirmed": recorded.published.confirmed,
        "verdict": _verdict(recorded.published),
        "samples": recorded.samples,
        "date": datetime.fromtimestamp(recorded.tuned_unix_s, UTC).date().isoformat(),
        "sdk_version": sdk_version,
    }
    if run.path.suffix == ".h":
        facts["weights_sha256"] = recorded.weights_sha256 or made_with.start_weights_sha256
    if run.task.space is not None:
        facts["tuned_parameters"] = set_text(recorded.published.parameters)
        facts["default_parameters"] = set_text(run.task.space.defaults)
    if tuned.by_size_ms:
        facts["sizes"] = "; ".join(f"{time_ms:.4g} ms at {size}" for size, time_ms in tuned.by_size_ms.items())
    if size:
        facts["size"] = size
    if default is not None and recorded.default_is_greedy:
        facts["default_search"] = Origin.GREEDY.value
    if recorded.published.no_default is not None:
        facts["no_default"] = recorded.published.no_default.what
    return {name: _presentable(fact) for name, fact in facts.items()}


def _verdict(published: Published) -> str:
    """Why it ships, without the names of devices that the run's own message has."""
    gain = published.speed_up_text
    if not published.confirmed:
        return f"unconfirmed: no play-off has decided{gain and f'; {gain}'}"
    if published.stays:
        return f"this is the {published.sample} schedule, which nothing has beaten: {published.reason}"
    return f"{published.reason}: {gain}" if gain else published.reason


def shipped_parameters(parameters: Mapping[str, str]) -> dict[str, str]:
    """The generator's parameters, sorted; of a path only the file's name, which tells nothing about the machine."""
    return {_printable(key): _printable(_LOCAL_PATH.sub("", value)) for key, value in sorted(parameters.items())}


def provenance_comment(facts: Provenance) -> list[str]:
    """Lines for the top of a file."""
    default = f"has no time: {facts['no_default']}" if "no_default" in facts else "has no time"
    if facts["default_ms"] is not None:
        how = "in turns with it" if facts["confirmed"] else "not in turns with it"
        default = f"{facts['default_ms']:.4g} ms +- {facts['default_spread_ms']:.2g}, {how}"
    tuned = f"{facts['tuned_ms']:.4g} ms +- {facts['tuned_spread_ms']:.2g}, {facts['tuned_from']}"
    if facts["tuned_low_ms"] is not None:
        tuned += f"; processes took {facts['tuned_low_ms']:.4g} to {facts['tuned_high_ms']:.4g} ms"
    tuned_parameters = []
    if "tuned_parameters" in facts:
        words = f"{facts['tuned_parameters']}, the default {facts['default_parameters']}"
        tuned_parameters.append(f"tuned         {words}")
    sizes = [f"sizes         {facts['sizes']}"] if "sizes" in facts else []
    sizes += [f"for one size  {facts['size']}"] if "size" in facts else []
    weights = [f"weights       {facts['weights_sha256']}"] if "weights_sha256" in facts else []
    return [
        f"generator     {facts['generator']}, parameters: {facts['parameters'] or 'none'}",
        *tuned_parameters,
        f"algorithm     {facts['algorithm_hash']}",
        f"target        {facts['target_profile']}: {facts['halide_target']}",
        f"made with     Halide {facts['halide_version']}, {facts['autoscheduler']}, SDK {facts['sdk_version']}",
        f"device        {facts['device']}, {facts['device_fingerprint']}",
        f"time          {tuned}, {Clock.words_of(str(facts['clock']))}",
        *sizes,
        f"default       {default}",
        f"play-off      {facts['verdict']}",
        f"samples       {facts['samples']} timed",
        *weights,
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
