"""Where a shipped schedule comes from: the facts in its comment, its constants and the manifest."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from autotune_loop.shipping.recorded_times import RecordedTimes
from autotune_loop.shipping.tuned_task import TunedTask
from autotune_loop.store.run_record import RunRecord
from devices.device import Clock

# Characters that need no escape in comments and strings of C++ and Python are the others.
_UNSAFE = re.compile(r"[^ -!#-\[\]-~]")
_LOCAL_PATH = re.compile(r"^(?:[A-Za-z]:)?(?:.*[\\/])(?=[^\\/]*$)")
_DEVICE_WORDS = {
    "local": "the machine that tuned it",
    "qemu": "the emulator QEMU",
    "hexagon-sim": "Qualcomm's simulator hexagon-sim",
}


@dataclass(frozen=True)
class ScheduleOrigin:
    """The generator, target and Halide that a schedule is for.

    Attributes:
        parameters: of the generator; of a path only the file's name.
    """

    generator: str
    parameters: Mapping[str, str]
    target_profile: str
    halide_target: str
    halide_version: str
    autoscheduler: str
    algorithm_hash: str


@dataclass(frozen=True)
class ScheduleTiming:
    """The times of a schedule and of the default.

    Attributes:
        device: the kind of device, in words.
        device_fingerprint: hash of the kind of hardware; equal for equal kinds.
        clock: 'wall', or the name of a clock that is not a device's.
        default_ms, tuned_ms: median times; the default's are None if it has none.
        tuned_low_ms, tuned_high_ms: the fastest and the slowest process of the play-off.
        confirmed: a play-off compared the two.
        verdict: of the play-off; empty without one.
        samples: schedules timed in the run.
    """

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


@dataclass(frozen=True)
class ShippedProvenance:
    """The facts in a shipped schedule's comment and constants. All text is printable ASCII without quotes and
    backslashes.

    Attributes:
        date: of the last measurement, UTC.
    """

    origin: ScheduleOrigin
    timing: ScheduleTiming
    weights_sha256: str
    date: str
    sdk_version: str

    def comment(self) -> list[str]:
        """Lines for the top of a file."""
        origin, timing = self.origin, self.timing
        tuned = _milliseconds(timing.tuned_ms, timing.tuned_spread_ms)
        between = f"processes took {timing.tuned_low_ms:.4g} to {timing.tuned_high_ms:.4g} ms"
        default = "has no time"
        if timing.default_ms is not None and timing.default_spread_ms is not None:
            how = "in turns with it" if timing.confirmed else "each was timed once"
            default = f"{_milliseconds(timing.default_ms, timing.default_spread_ms)}, {how}"
        return [
            f"generator     {origin.generator}, parameters: {_parameters_text(origin) or 'none'}",
            f"algorithm     {origin.algorithm_hash}",
            f"target        {origin.target_profile}: {origin.halide_target}",
            f"made with     Halide {origin.halide_version}, {origin.autoscheduler}, SDK {self.sdk_version}",
            f"device        {timing.device}, {timing.device_fingerprint}",
            f"time          {tuned}, median and spread; {between}, {Clock.words_of(timing.clock)}",
            f"default       {default}",
            f"play-off      {timing.verdict or 'none'}",
            f"samples       {timing.samples} timed",
            f"weights       {self.weights_sha256}",
            f"date          {self.date}",
        ]

    def constants(self) -> dict[str, str | int | float | bool | None]:
        """Every fact by its name, as plain values."""
        own = {"weights_sha256": self.weights_sha256, "date": self.date, "sdk_version": self.sdk_version}
        return {**vars(self.origin), "parameters": _parameters_text(self.origin), **vars(self.timing), **own}


def _parameters_text(origin: ScheduleOrigin) -> str:
    return " ".join(f"{key}={value}" for key, value in origin.parameters.items())


def make_provenance(
    record: RunRecord, task: TunedTask, times: RecordedTimes, algorithm_hash: str, sdk_version: str
) -> ShippedProvenance:
    """The facts of one argument set of a run."""
    profile, made_with = record.spec.profile, record.made_with
    parameters = {printable(key): printable(without_folder(value)) for key, value in sorted(task.parameters.items())}
    default = times.default
    return ShippedProvenance(
        ScheduleOrigin(
            generator=printable(task.generator),
            parameters=parameters,
            target_profile=printable(profile.name),
            halide_target=printable(profile.halide_target),
            halide_version=printable(made_with.halide_version),
            autoscheduler=printable(profile.autoscheduler.name),
            algorithm_hash=algorithm_hash,
        ),
        ScheduleTiming(
            device=_device(record),
            device_fingerprint=_fingerprint(record),
            clock=printable(times.clock),
            default_ms=None if default is None else _rounded(default.median_ms),
            default_spread_ms=None if default is None else _rounded(default.spread_ms),
            tuned_ms=_rounded(times.tuned.median_ms),
            tuned_spread_ms=_rounded(times.tuned.spread_ms),
            tuned_low_ms=_rounded(times.tuned.low_ms),
            tuned_high_ms=_rounded(times.tuned.high_ms),
            confirmed=times.confirmed,
            verdict=printable(times.verdict),
            samples=times.samples,
        ),
        weights_sha256=printable(times.weights_sha256 or made_with.start_weights_sha256),
        date=datetime.fromtimestamp(times.tuned_unix_s, UTC).date().isoformat(),
        sdk_version=printable(sdk_version),
    )


def printable(text: str) -> str:
    """`text` with a question mark for every character that would need an escape in a comment or a string."""
    return _UNSAFE.sub("?", text)


def without_folder(value: str) -> str:
    """A parameter's value; of a path only the last part, so that it reveals nothing about the machine."""
    return _LOCAL_PATH.sub("", value)


def _device(record: RunRecord) -> str:
    """The kind of device; names of devices and machines stay private."""
    names = record.made_with.devices
    boards = "one board" if len(names) <= 1 else f"{len(names)} boards"
    words = _DEVICE_WORDS.get(names[0], boards) if len(names) == 1 else boards
    return f"{words}, {record.spec.parallelism} threads"


def _fingerprint(record: RunRecord) -> str:
    profile, made_with = record.spec.profile, record.made_with
    facts = [_device(record), profile.name, profile.halide_target, made_with.clock, str(record.spec.parallelism)]
    facts += [json.dumps(profile.to_dict()["machine"]), made_with.processor]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def _rounded(value_ms: float) -> float:
    return float(f"{value_ms:.6g}")


def _milliseconds(median_ms: float, spread_ms: float) -> str:
    return f"{median_ms:.4g} ms +- {spread_ms:.2g}"
