"""Where a shipped schedule comes from: facts that are written into its comment, its constants and the manifest."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime

from autotune_loop.shipping.recorded_times import RecordedTimes
from autotune_loop.shipping.tuned_task import TunedTask
from autotune_loop.store.run_record import RunRecord
from devices.device import Clock

# What may stand in a comment and in a string of C++ and of Python as it is.
_UNSAFE = re.compile(r"[^ -!#-\[\]-~]")
_LOCAL_PATH = re.compile(r"^(?:[A-Za-z]:)?(?:.*[\\/])(?=[^\\/]*$)")
_DEVICE_WORDS = {
    "local": "the machine that tuned it",
    "qemu": "the emulator QEMU",
    "hexagon-sim": "Qualcomm's simulator hexagon-sim",
}


@dataclass(frozen=True)
class ShippedProvenance:
    """What a header says of itself. All text is printable ASCII without quotes and backslashes.

    Attributes:
        parameters: of the generator; of a path only the file's name is kept.
        device: the kind of device it was timed on, in words.
        device_fingerprint: hash of what kind of hardware that was; equal for equal kinds.
        clock: 'wall', or the name of a clock that is not a device's.
        default_ms, tuned_ms: median times; the default's are None where it has none.
        tuned_low_ms, tuned_high_ms: the fastest and the slowest process of the play-off.
        confirmed: the two were timed against each other before the winner was announced.
        verdict: what that showed; empty where it was not done.
        samples: schedules that were timed for it.
        date: of the last measurement, UTC.
    """

    generator: str
    parameters: Mapping[str, str]
    target_profile: str
    halide_target: str
    halide_version: str
    autoscheduler: str
    algorithm_hash: str
    device: str
    device_fingerprint: str
    clock: str
    default_ms: float | None
    default_spread_ms: float | None
    tuned_ms: float
    tuned_spread_ms: float
    tuned_low_ms: float
    tuned_high_ms: float
    confirmed: bool
    verdict: str
    samples: int
    weights_sha256: str
    date: str
    sdk_version: str

    @property
    def clock_words(self) -> str:
        """What the times are, for people."""
        return Clock.words_of(self.clock)

    @property
    def _default(self) -> str:
        if self.default_ms is None or self.default_spread_ms is None:
            return "has no time"
        how = "in turns with it" if self.confirmed else "each was timed once"
        return f"{_milliseconds(self.default_ms, self.default_spread_ms)}, {how}"

    def comment(self) -> list[str]:
        """Lines for the head of a file."""
        given = " ".join(f"{key}={value}" for key, value in self.parameters.items()) or "none"
        tuned = _milliseconds(self.tuned_ms, self.tuned_spread_ms)
        between = f"processes took {self.tuned_low_ms:.4g} to {self.tuned_high_ms:.4g} ms, {self.clock_words}"
        return [
            f"generator     {self.generator}, parameters: {given}",
            f"algorithm     {self.algorithm_hash}",
            f"target        {self.target_profile}: {self.halide_target}",
            f"made with     Halide {self.halide_version}, {self.autoscheduler}, SDK {self.sdk_version}",
            f"device        {self.device}, {self.device_fingerprint}",
            f"time          {tuned}, median and spread; {between}",
            f"default       {self._default}",
            f"play-off      {self.verdict or 'none'}",
            f"samples       {self.samples} timed",
            f"weights       {self.weights_sha256}",
            f"date          {self.date}",
        ]

    def constants(self) -> dict[str, str | int | float | bool | None]:
        """Every fact by its name, as plain values."""
        parameters = " ".join(f"{key}={value}" for key, value in self.parameters.items())
        facts = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**facts, "parameters": parameters}


def make_provenance(
    record: RunRecord, task: TunedTask, times: RecordedTimes, algorithm_hash: str, sdk_version: str
) -> ShippedProvenance:
    """The facts of one argument set of a run."""
    identity = record.identity
    return ShippedProvenance(
        generator=printable(task.generator),
        parameters={printable(key): printable(without_folder(value)) for key, value in sorted(task.parameters.items())},
        target_profile=printable(identity.get("profile", "")),
        halide_target=printable(identity.get("halide_target", "")),
        halide_version=printable(identity.get("halide_version", "")),
        autoscheduler=printable(identity.get("autoscheduler", "")),
        algorithm_hash=algorithm_hash,
        device=_device(record),
        device_fingerprint=_fingerprint(record),
        clock=printable(times.clock),
        default_ms=None if times.default is None else _rounded(times.default.median_ms),
        default_spread_ms=None if times.default is None else _rounded(times.default.spread_ms),
        tuned_ms=_rounded(times.tuned.median_ms),
        tuned_spread_ms=_rounded(times.tuned.spread_ms),
        tuned_low_ms=_rounded(times.tuned.low_ms),
        tuned_high_ms=_rounded(times.tuned.high_ms),
        confirmed=times.confirmed,
        verdict=printable(times.verdict),
        samples=times.samples,
        weights_sha256=printable(times.weights_sha256 or identity.get("start_weights_sha256", "")),
        date=datetime.fromtimestamp(times.tuned_unix_s, UTC).date().isoformat(),
        sdk_version=printable(sdk_version),
    )


def printable(text: str) -> str:
    """`text` with a question mark for everything that cannot stand in a comment or a string as it is."""
    return _UNSAFE.sub("?", text)


def without_folder(value: str) -> str:
    """A parameter's value; of a path only the last part, which says nothing about the machine."""
    return _LOCAL_PATH.sub("", value)


def _device(record: RunRecord) -> str:
    """A kind: names of devices and machines are nobody's business."""
    names = device_names(record)
    boards = "one board" if len(names) <= 1 else f"{len(names)} boards"
    words = _DEVICE_WORDS.get(names[0], boards) if len(names) == 1 else boards
    return f"{words}, {printable(record.identity.get('parallelism', ''))} threads"


def device_names(record: RunRecord) -> list[str]:
    """The devices that a run was timed on, as its user calls them."""
    return [name for text in record.settings.get("devices", "").split(",") if (name := text.strip())]


def _fingerprint(record: RunRecord) -> str:
    keys = ("profile", "halide_target", "clock", "parallelism")
    facts = [_device(record), *(record.identity.get(key, "") for key in keys)]
    facts += [record.settings.get(key, "") for key in ("machine", "processor")]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def _rounded(value_ms: float) -> float:
    return float(f"{value_ms:.6g}")


def _milliseconds(median_ms: float, spread_ms: float) -> str:
    return f"{median_ms:.4g} ms +- {spread_ms:.2g}"
