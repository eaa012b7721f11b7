"""A run whose first schedules all failed: why, and what mends it."""

from __future__ import annotations

from collections.abc import Mapping

from devices.timing.measurement import MeasureFailureReason
from targets.errors import GeneratorError
from targets.generator.run import GeneratorFailureReason
from targets.profile.profile import TargetProfile

_LATE = {f"{stage}: {GeneratorFailureReason.TIMED_OUT.value}" for stage in ("build", "search")}
_WRONG = f"measure: {MeasureFailureReason.WRONG_OUTPUT.value}"


def nothing_timed(
    generator_name: str, profile: TargetProfile, failures: Mapping[str, int], last_failure: str
) -> GeneratorError:
    """What to raise.

    Args:
        failures: 'stage: reason' → how many schedules failed so.
        last_failure: the message of the newest one.
    """
    counts = ", ".join(f"{count} × {kind}" for kind, count in failures.items())
    return GeneratorError(
        f"None of the first schedules could be timed for {generator_name} ({counts}).",
        next_step=f"The last one: {last_failure}{_mend(failures, profile)}",
    )


def _mend(failures: Mapping[str, int], profile: TargetProfile) -> str:
    if failures.keys() <= _LATE:
        return " Give the run more time: --budget (each gets a share of it), --search-limit."
    if _WRONG not in failures:
        return ""
    overflow = (
        " Where every output is wrong, look for arithmetic that overflows with random inputs, which Halide leaves open"
        " for signed 32-bit integers: give realistic ones with --input NAME=FILE.npy."
    )
    if not profile.has_doubtful_vectors:
        return overflow
    return (
        f"{overflow} Halide's vector code for {profile.name} is wrong for some steps between 8, 16 and 32 bits, too:"
        " compute in another width, as u16(a) / 2 in place of u16(i32(a) / 2)."
    )
