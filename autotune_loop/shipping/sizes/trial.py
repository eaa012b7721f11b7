"""A schedule at other sizes than its estimates: does it run, and is its output another schedule's?"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from halide_autotune.autotune_loop.measure.output_tolerance import pipeline_tolerance
from halide_autotune.autotune_loop.shipping.confirmation import TrialPlace
from halide_autotune.autotune_loop.shipping.files.guard_header import KernelArgument, read_signature
from halide_autotune.autotune_loop.shipping.proven_schedule import ProvenSchedule
from halide_autotune.autotune_loop.shipping.sizes.request import (
    OutputSize,
    SizeOutcome,
    SizeVerdict,
    argument_sizes,
    neighbouring_sizes,
)
from halide_autotune.devices.local.cores import CoreTurns, plan_cores
from halide_autotune.devices.remote.open import device_transport
from halide_autotune.devices.timing.measure import Session, check_output, list_kernels, write_reference
from halide_autotune.devices.timing.measure_settings import KernelInputs, Tolerance
from halide_autotune.devices.timing.measurement import MeasureFailure, MeasureFailureReason
from halide_autotune.targets.build.artifacts import build_kernel
from halide_autotune.targets.build.executable import Executable, link_executable
from halide_autotune.targets.errors import DeviceError, GeneratorError
from halide_autotune.targets.generator.run import GeneratorFailure
from halide_autotune.targets.process.scratch_folder import scratch_folder
from halide_autotune.targets.profile.profile import OWN_SCHEDULE
from halide_autotune.targets.schedule.autoschedulers import ScheduleChoice
from halide_autotune.targets.schedule.plugins import schedule_autoscheduler

_CALL_LIMIT_S = 300.0
_LIST_LIMIT_S = 60.0
_REFERENCE_FILE = "size_reference.raw"
_TUNED, _PLAIN, _OWN = "tuned", "plain", "own"
# Everything at root, without splits: it takes every size that the algorithm takes.
_PLAIN_HEADER = """\
#include "Halide.h"

inline void apply_schedule_plain(::Halide::Pipeline pipeline, ::Halide::Target target) {
    for (size_t index = 0; index < @COUNT@; index++) {
        pipeline.get_func(index).compute_root();
    }
}
"""
_REFERENCES = {
    _PLAIN: "A plain schedule, with every Func at the root,",
    _OWN: "The generator's own schedule",
}
# What the runner writes before Halide's message.
_PREAMBLE = re.compile(r"^The runner reports: (?:The call of '\w+' ended with error -?\d+: )?")
_VERDICTS = {
    MeasureFailureReason.HALIDE_ERROR: SizeVerdict.REFUSED,
    MeasureFailureReason.WRONG_OUTPUT: SizeVerdict.WRONG_OUTPUT,
}


@dataclass(frozen=True)
class TriedSizes:
    """The results at all sizes.

    Attributes:
        signature: of the kernel.
        outcomes: of the requested sizes, then of the neighbours.
        asked: how many sizes were requested.
    """

    signature: tuple[KernelArgument, ...]
    outcomes: tuple[SizeOutcome, ...]
    asked: int


def try_sizes(
    proven: ProvenSchedule,
    asked: Sequence[OutputSize],
    place: TrialPlace,
    progress: Callable[[str], None],
    *,
    neighbours: bool,
) -> TriedSizes:
    """Call the schedule at every size, and compare with another schedule's output at that size.

    The other one has every Func at the root. Where that cannot run, as with a Func of many gigabytes, it is the
    generator's own, if there is one.

    Raises:
        GeneratorError: a schedule cannot be built.
        UsageError: a size has too many dimensions.
        DeviceError, EmulatorError, ToolchainError: what is missing or broken.
    """
    usable = frozenset(os.sched_getaffinity(0))
    cores = plan_cores(usable, len(usable) if place.device.uses_host_cores else 0)
    turns = CoreTurns(place.workspace.lock_folder) if cores.take_turns else None
    with (
        scratch_folder("sizes") as folder,
        # Nothing is timed here: others may build meanwhile, but not measure.
        turns.building() if turns else contextlib.nullcontext(),
    ):
        progress("building for other sizes")
        executable, tolerance = _build(proven, place, folder)
        transport = device_transport(
            place.device,
            place.profile,
            folder / "device",
            place.workspace.environment,
            cores.measure,
            place.workspace.connections,
            place.tools.cache,
        )
        with contextlib.closing(transport):
            transport.push(executable.path, executable.path.name)
            session = Session(place.device, transport, KernelInputs(scalars=proven.run.inputs.scalars), tolerance)
            signature = read_signature(list_kernels(session, executable.path.name, _LIST_LIMIT_S), _TUNED)
            sizes = dict.fromkeys([*asked, *(neighbouring_sizes(signature) if neighbours else ())])
            outcomes = []
            for size in sizes:
                progress(f"trying {size.text}")
                inputs = replace(session.inputs, sizes=argument_sizes(signature, size), exact_outputs=True)
                outcomes.append(_try(replace(session, inputs=inputs), executable.path.name, _references(proven), size))
    return TriedSizes(signature, tuple(outcomes), len(set(asked)))


def _references(proven: ProvenSchedule) -> tuple[str, ...]:
    """What the schedule is compared with: the first of these that runs."""
    return (_PLAIN, _OWN) if proven.run.task.schedules_itself else (_PLAIN,)


def _build(proven: ProvenSchedule, place: TrialPlace, folder: Path) -> tuple[Executable, Tolerance]:
    plain = _PLAIN_HEADER.replace("@COUNT@", str(len(proven.shipped.funcs)))
    choices = {
        _TUNED: ScheduleChoice(_TUNED, schedule_autoscheduler(proven.header_text, place.compiler)),
        _PLAIN: ScheduleChoice(_PLAIN, schedule_autoscheduler(plain, place.compiler)),
        _OWN: ScheduleChoice(OWN_SCHEDULE, None),
    }
    kernels = []
    for name in (_TUNED, *_references(proven)):
        recipe = replace(place.recipe(proven.run, proven.program, choices[name]), function_name=name)
        kernels.append(build_kernel(recipe, folder / name))
    executable = link_executable(kernels, place.profile.halide_target, place.tools, folder / "sizes")
    tolerance = pipeline_tolerance(recipe, place.compiler)
    if isinstance(tolerance, GeneratorFailure):
        raise GeneratorError(tolerance.message)
    return executable, tolerance


def _try(session: Session, executable: str, references: Sequence[str], size: OutputSize) -> SizeOutcome:
    verdicts, reasons = [], []
    for reference in references:
        failure = write_reference(session, executable, reference, _REFERENCE_FILE, _CALL_LIMIT_S)
        if failure is None:
            return _compared(session, executable, size)
        verdicts.append(_verdict(failure))
        reasons.append(f"{_REFERENCES[reference]} fails there: {_without_preamble(failure).rstrip('.')}.")
    return SizeOutcome(size.text, verdicts[0], " ".join(["Its output cannot be compared.", *reasons]))


def _compared(session: Session, executable: str, size: OutputSize) -> SizeOutcome:
    failure = check_output(session, executable, _TUNED, _REFERENCE_FILE, _CALL_LIMIT_S)
    if failure is None:
        return SizeOutcome(size.text, SizeVerdict.ACCEPTED, "")
    return SizeOutcome(size.text, _verdict(failure), _without_preamble(failure))


def _without_preamble(failure: MeasureFailure) -> str:
    return _PREAMBLE.sub("", failure.message)


def _verdict(failure: MeasureFailure) -> SizeVerdict:
    """The verdict on a failure of the schedule.

    Raises:
        DeviceError: the device failed.
    """
    if failure.reason is MeasureFailureReason.DEVICE:
        raise DeviceError(failure.message)
    return _VERDICTS.get(failure.reason, SizeVerdict.FAILED)


def check_acceptance(header: str, tried: TriedSizes, guard: bool) -> None:
    """Check that the schedule may ship.

    Requested sizes must be accepted, unless there is a guard; Halide's checks may refuse a neighbour. A wrong output or
    a crash is never allowed.

    Raises:
        GeneratorError: the schedule does not ship; the message has the first bad size.
    """
    for index, outcome in enumerate(tried.outcomes):
        if outcome.verdict is SizeVerdict.ACCEPTED:
            continue
        if outcome.verdict is not SizeVerdict.REFUSED:
            raise _refused(header, outcome, "Report this bug, and tune again with another --seed.")
        if index < tried.asked and not guard:
            raise _refused(
                header, outcome, "Tune with that size as the estimate, or ship with --guard and a fallback kernel."
            )


def _refused(header: str, outcome: SizeOutcome, next_step: str) -> GeneratorError:
    return GeneratorError(
        f"{header} is not shipped: at {outcome.size} it is {_WORDS[outcome.verdict]}. {outcome.message.rstrip('.')}.",
        next_step=next_step,
    )


_WORDS = {
    SizeVerdict.REFUSED: "refused by Halide",
    SizeVerdict.WRONG_OUTPUT: "wrong",
    SizeVerdict.FAILED: "not run to its end",
}
