"""The errors of a run without schedules: no search gives one, or the first ones all failed; causes and fixes."""

from __future__ import annotations

from collections.abc import Mapping

from halide_autotune.autotune_loop.execute.tasks.build_tasks import BuiltReference
from halide_autotune.autotune_loop.specification.tuning_task import TuningTask
from halide_autotune.devices.timing.measurement import MeasureFailureReason
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.run import GeneratorFailure, GeneratorFailureReason
from halide_autotune.targets.profile.profile import TargetProfile
from halide_autotune.targets.schedule.plugins import ALL_AT_ROOT

# Reasons that concern searches, but not schedules that others make.
SEARCHES_ALONE = (GeneratorFailureReason.DEAD_END, GeneratorFailureReason.EXTERN_STAGE)
_LATE = {f"{stage}: {GeneratorFailureReason.TIMED_OUT.value}" for stage in ("build", "search")}
_WRONG = f"measure: {MeasureFailureReason.WRONG_OUTPUT.value}"


def no_search(task: TuningTask, profile: TargetProfile, failure: GeneratorFailure, reference: object) -> GeneratorError:
    """Return the error of a generator that no search gives a schedule of, with what can be built of it.

    Args:
        failure: of the first search.
        reference: what came of building one; it counts for failures in SEARCHES_ALONE.
    """
    if failure.reason not in SEARCHES_ALONE:
        return GeneratorError(failure.message)
    schedules = ["own"]
    if isinstance(reference, BuiltReference) and reference.autoscheduler != ALL_AT_ROOT:
        schedules.append(reference.autoscheduler.lower())
    words = " ".join(f"--schedule {name}" for name in schedules)
    return GeneratorError(
        f"No search of {profile.autoscheduler.name} gives a schedule, so there is nothing to tune. {failure.message}",
        next_step=f"What can be built is timed by: sdk bench {task.reference.file.name}:{task.generator_name} {words}",
    )


def nothing_timed(
    generator_name: str, profile: TargetProfile, failures: Mapping[str, int], last_failure: str
) -> GeneratorError:
    """Return the error to raise.

    Args:
        failures: 'stage: reason' → number of schedules that failed this way.
        last_failure: the message of the newest one.
    """
    counts = ", ".join(f"{count} × {kind}" for kind, count in failures.items())
    return GeneratorError(
        f"None of the first schedules of {generator_name} could be timed ({counts}).",
        next_step=f"The last failure: {last_failure}{_advice(failures, profile)}",
    )


def _advice(failures: Mapping[str, int], profile: TargetProfile) -> str:
    if failures.keys() <= _LATE:
        return " Give each schedule more time: raise --budget or --search-limit."
    if _WRONG not in failures:
        return ""
    overflow = (
        " If all outputs are wrong, signed 32-bit arithmetic may overflow with random inputs, which Halide leaves"
        " undefined: pass realistic inputs with --input NAME=FILE.npy."
    )
    if not profile.has_doubtful_vectors:
        return overflow
    return (
        f"{overflow} Halide's vector code for {profile.name} is also wrong for some conversions between 8, 16 and"
        " 32 bits: compute in another width, such as u16(a) / 2 instead of u16(i32(a) / 2)."
    )
