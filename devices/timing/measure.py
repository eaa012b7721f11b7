"""Time one kernel of a pushed executable: run the runner, read its report, judge."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.device_trouble import MAKE_ROOM, DeviceTrouble, TroubleKind, says_full
from halide_autotune.devices.timing.machine_signs import Surroundings, read_signs, read_surroundings
from halide_autotune.devices.timing.measure_settings import KernelInputs, MeasureSettings, Tolerance
from halide_autotune.devices.timing.measurement import (
    Beside,
    MeasureFailure,
    MeasureFailureReason,
    Measurement,
    ReshapedOutput,
    Seconds,
)
from halide_autotune.devices.timing.report import read_event, read_events
from halide_autotune.devices.transport import RunOutcome, Transport, check_name
from halide_autotune.targets.errors import DeviceError
from halide_autotune.targets.process.limited_process import signal_name
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.values.checks import kind_of
from halide_autotune.targets.values.texts import printable

_REASON_OF_ERROR = {
    "usage": MeasureFailureReason.WRONG_ARGUMENTS,
    "halide": MeasureFailureReason.HALIDE_ERROR,
    "memory": MeasureFailureReason.OUT_OF_MEMORY,
    "gpu": MeasureFailureReason.DEVICE,
    # From the launcher on a phone: its DSP has run nothing; or has ended without a word.
    "dsp": MeasureFailureReason.DEVICE,
    "crash": MeasureFailureReason.CRASHED,
    "overrun": MeasureFailureReason.WRONG_OUTPUT,
    "wrong_output": MeasureFailureReason.WRONG_OUTPUT,
    # A file beside the executable (the reference's outputs, an input), which no kernel touches.
    "io": MeasureFailureReason.DEVICE,
    "reference": MeasureFailureReason.DEVICE,
}
_NOT_ITS_OWN = (
    ": it used memory that is not its own. Either the generator promises too much (unsafe_promise_clamped, a promise "
    "about a buffer), or the schedule puts more on the stack than fits"
)
# What QEMU prints before it ends itself; the kernel is not at fault.
_EMULATOR_FAULT = re.compile(r"^qemu-\w+: .*Assertion .* failed\.?$", re.ASCII | re.MULTILINE)
# A simulated call takes as long as the one before, once the caches are as the calls leave them.
_SIMULATED_TIME_ARGUMENTS = (
    "--warm-up-s 0 --precision 0 --min-repetition-s 0 --min-repetitions 1 --max-repetitions 1 --max-time-s 1000000"
).split()
# Extents, and first coordinates if they are not all 0, as an option --size has them; of up to eight dimensions.
_SHAPE = re.compile(r"\d[\dx]{0,95}(@-?\d[-\dx]{0,103})?", re.ASCII)
# Long enough for the clock of processor times, which ticks a hundred times a second.
_LOOK_S = 1.0
_LOOK_LIMIT_S = 60.0
_LONGEST_TEXT_CHARACTERS = 2000
_LONGEST_NAME_CHARACTERS = 200


def _text(value: object) -> str:
    """What a runner says, in one line. Nothing of ours says more than a text, a number or a list of them."""
    parts = value if isinstance(value, list) else [value]
    is_flat = all(isinstance(part, str | int | float | None) for part in parts)
    # JSON may spell half a surrogate pair, which nothing can store, and what makes a terminal do things.
    told = str(value) if is_flat else kind_of(value)
    return printable(told.encode("utf-8", "replace").decode())[:_LONGEST_TEXT_CHARACTERS]


@dataclass(frozen=True)
class _Times:
    """What the runner's event `timed` says of each repetition."""

    repetitions_s: tuple[Seconds, ...]
    disturbed: tuple[bool, ...] = ()
    beside: str = ""
    beside_s: tuple[Seconds, ...] = ()
    beside_disturbed: tuple[bool, ...] = ()
    beside_first: tuple[bool, ...] = ()
    stopped_by: Annotated[str, _text] = ""


@dataclass(frozen=True)
class Session:
    """One device in use: its transport, and what every kernel is called with."""

    device: Device
    transport: Transport
    inputs: KernelInputs
    tolerance: Tolerance

    def push_inputs(self) -> None:
        """Send the input files to the device."""
        for name, path in self.inputs.files.items():
            self.transport.push(path, _input_file_name(name))

    def kernel_arguments(self, kernel: str) -> list[str]:
        """Return the runner's options for a kernel and its arguments."""
        # The simulated clock follows one thread only.
        cores = "--simulated-cores" if self.device.clock is Clock.SIMULATED else "--threads"
        arguments = ["--kernel", kernel, "--seed", str(self.inputs.seed), cores, str(self.device.threads)]
        for name, size in self.inputs.sizes.items():
            arguments += ["--size", f"{name}={size}"]
        for name, value in self.inputs.scalars.items():
            arguments += ["--scalar", f"{name}={value}"]
        if self.inputs.exact_outputs:
            arguments.append("--exact-outputs")
        for name in self.inputs.files:
            arguments += ["--input", f"{name}={_input_file_name(name)}"]
        return arguments

    def reference_arguments(self, reference: str) -> list[str]:
        """Return the runner's options for comparing the output with the file `reference`."""
        tolerance = {
            "--integer-tolerance": self.tolerance.integer,
            "--float-relative": self.tolerance.float_relative,
            "--float-absolute-scale": self.tolerance.float_absolute_share,
            "--mismatch-share": self.tolerance.mismatch_share,
            "--far-scale": self.tolerance.far_scale,
            "--far-share": self.tolerance.far_share,
            "--least-common": self.tolerance.least_common,
        }
        return ["--reference", check_name(reference), *_options(tolerance)]


def write_reference(
    session: Session,
    executable: str,
    kernel: str,
    reference: str,
    time_s: float,
    stop: StopSignal | None = None,
) -> MeasureFailure | None:
    """Run `kernel` once and keep its outputs on the device as the file `reference`; return None on success.

    Raises:
        DeviceError: the device cannot be used.
    """
    return _run_once(session, executable, kernel, ["--write-reference", check_name(reference)], time_s, stop)


def check_output(
    session: Session, executable: str, kernel: str, reference: str, time_s: float, stop: StopSignal | None = None
) -> MeasureFailure | None:
    """Compare the kernel's output with the file `reference` without timing it; return None when it is right.

    Raises:
        DeviceError: the device cannot be used.
    """
    return _run_once(session, executable, kernel, session.reference_arguments(reference), time_s, stop)


def list_kernels(session: Session, executable: str, time_s: float) -> list[dict[str, Any]]:
    """Return the runner's description of its kernels: their names and arguments. It is not to be trusted.

    Raises:
        DeviceError: the device cannot be used.
    """
    outcome = session.transport.run(executable, ["--list"], time_s, None)
    return [event for event in read_events(outcome.output) if event.get("event") == "kernel"]


def look_around(session: Session, executable: str, stop: StopSignal | None = None) -> Surroundings | None:
    """What the machine does while nothing of ours is timed, and who else computes there; None if it does not tell.

    Raises:
        DeviceError: the device cannot be used.
    """
    outcome = session.transport.run(executable, ["--neighbours", repr(_LOOK_S)], _LOOK_LIMIT_S, stop)
    return read_surroundings(read_events(outcome.output)) if outcome.succeeded else None


def measure_kernel(
    session: Session,
    executable: str,
    kernel: str,
    settings: MeasureSettings,
    reference: str | None,
    stop: StopSignal | None = None,
) -> Measurement | MeasureFailure:
    """Compare the kernel's output with the file `reference`, then time it. Device trouble is a result, too."""
    device = session.device
    arguments = session.kernel_arguments(kernel)
    if reference is not None:
        arguments += session.reference_arguments(reference)
    arguments += _time_arguments(settings, device.clock)
    try:
        outcome = session.transport.run(executable, arguments, settings.run_limit_s, stop)
    except DeviceError as error:
        return device_failure(kernel, device.name, error, under_way=True)
    events = read_events(outcome.output)
    if not outcome.succeeded or not any(event.get("event") == "timed" for event in events):
        return failure_of(device, kernel, outcome, events)
    times = _read_times(events)
    if times is None or times.beside != (_paired_with(settings, device.clock) or ""):
        message = f"The runner's report on {device.name} has no usable times."
        return MeasureFailure(kernel, device.name, MeasureFailureReason.BAD_REPORT, message, outcome.output)
    return Measurement(
        kernel=kernel,
        device=device.name,
        clock=device.clock,
        repetitions_s=times.repetitions_s,
        stopped_by=times.stopped_by,
        output_checked=reference is not None,
        canary_s=outcome.canary_s,
        disturbed=() if device.clock is Clock.SIMULATED else times.disturbed,
        beside=Beside(times.beside, times.beside_s, times.beside_disturbed, times.beside_first)
        if times.beside
        else None,
        reshaped=_reshaped(events),
        machine=read_signs(events) if device.clock.shows_machine else None,
    )


def device_failure(kernel: str, device_name: str, error: DeviceError, *, under_way: bool) -> MeasureFailure:
    """Return the failure of a schedule that has no time because of its device."""
    kind = error.kind if isinstance(error, DeviceTrouble) else TroubleKind.BROKEN
    return MeasureFailure(
        kernel,
        device_name,
        MeasureFailureReason.DEVICE,
        str(error),
        "",
        trouble=kind,
        under_way=under_way and kind in (TroubleKind.LOST, TroubleKind.TIMEOUT),
    )


def _input_file_name(argument: str) -> str:
    return check_name(f"input.{argument}.raw")


def _options(values: Mapping[str, float]) -> list[str]:
    return [part for name, value in values.items() for part in (name, repr(value))]


def _run_once(
    session: Session, executable: str, kernel: str, arguments: Sequence[str], time_s: float, stop: StopSignal | None
) -> MeasureFailure | None:
    arguments = [*session.kernel_arguments(kernel), *arguments]
    outcome = session.transport.run(executable, arguments, time_s, stop)
    if outcome.succeeded:
        return None
    return failure_of(session.device, kernel, outcome, read_events(outcome.output))


def _time_arguments(settings: MeasureSettings, clock: Clock) -> list[str]:
    if clock is Clock.SIMULATED:
        return ["--time", *_SIMULATED_TIME_ARGUMENTS]
    values: dict[str, float] = {
        "--precision": settings.precision,
        "--warm-up-s": settings.warm_up_s,
        "--min-time-s": settings.min_time_s,
        "--max-time-s": settings.max_time_s,
        "--min-repetitions": settings.min_repetitions,
        "--max-repetitions": settings.max_repetitions,
    }
    if settings.give_up_over_s is not None:
        values["--give-up-over-s"] = settings.give_up_over_s
    beside = _paired_with(settings, clock)
    paired = [] if beside is None else ["--beside", beside, "--lost-over", repr(settings.lost_over)]
    machine = ["--machine"] if clock.shows_machine else []
    return ["--time", *machine, *paired, *_options(values)]


def _paired_with(settings: MeasureSettings, clock: Clock) -> str | None:
    """The kernel to time another one beside: without noise there is nothing that a pair would take out."""
    return settings.beside if clock.is_noisy else None


def _read_times(events: Sequence[dict[str, Any]]) -> _Times | None:
    """The times of a runner's report; None if it is not consistent."""
    times = read_event("timed", _Times, events)
    if times is None or not times.repetitions_s:
        return None
    count = len(times.repetitions_s)
    pairs = (times.beside_s, times.beside_disturbed, times.beside_first)
    fits = len(times.disturbed) in (0, count) and all(len(values) == (count if times.beside else 0) for values in pairs)
    return times if fits else None


def _reshaped(events: Sequence[dict[str, Any]]) -> tuple[ReshapedOutput, ...]:
    """The outputs that have another shape than the reference's; what is not the runner's form is skipped."""
    outputs = []
    for event in events:
        told = [event.get(key) for key in ("output", "computed", "reference", "common")]
        if event.get("event") != "compared" or not all(isinstance(text, str) for text in told):
            continue
        name, *shapes = (str(text) for text in told)
        is_sound = name.isprintable() and len(name) <= _LONGEST_NAME_CHARACTERS and all(map(_SHAPE.fullmatch, shapes))
        if is_sound and shapes[0] != shapes[1]:
            outputs.append(ReshapedOutput(name.partition("$")[0], *shapes))
    return tuple(outputs)


def ask_kernel(
    session: Session,
    executable: str,
    kernel: str,
    question: Sequence[str],
    answer: str,
    *,
    reference: str | None,
    limit_s: float,
    stop: StopSignal | None = None,
) -> list[dict[str, Any]] | MeasureFailure:
    """Compare the kernel's output with the file `reference`, and ask the runner something of the kernel.

    Args:
        question: the runner's option.
        answer: the event that it answers with.

    Returns:
        All events.
    """
    arguments = session.kernel_arguments(kernel)
    if reference is not None:
        arguments += session.reference_arguments(reference)
    try:
        outcome = session.transport.run(executable, [*arguments, *question], limit_s, stop)
    except DeviceError as error:
        return device_failure(kernel, session.device.name, error, under_way=True)
    events = read_events(outcome.output)
    if not outcome.succeeded or not any(event.get("event") == answer for event in events):
        return failure_of(session.device, kernel, outcome, events)
    return events


def failure_of(device: Device, kernel: str, outcome: RunOutcome, events: Sequence[dict[str, Any]]) -> MeasureFailure:
    """What a run of the runner failed of."""
    reason, message = _judge(outcome, events)
    if reason is MeasureFailureReason.DEVICE:
        trouble = DeviceTrouble(TroubleKind.BROKEN, f"{device.name} lacks what every kernel needs. {message}")
        if says_full(message):
            trouble = DeviceTrouble(TroubleKind.FULL, f"{device.name} has no room left. {message}", next_step=MAKE_ROOM)
        return device_failure(kernel, device.name, trouble, under_way=False)
    return MeasureFailure(kernel, device.name, reason, message, outcome.output)


def _difference(compared: dict[str, Any]) -> str:
    keys = ("mismatches", "elements", "output", "max_absolute_error", "first_mismatch", "expected", "actual")
    mismatches, elements, output, error, place, expected, actual = (_text(compared.get(key)) for key in keys)
    return (
        f" {mismatches} of {elements} elements of {output} differ, by up to {error}; "
        f"the first is at {place}: expected {expected}, got {actual}."
    )


def _judge(outcome: RunOutcome, events: Sequence[dict[str, Any]]) -> tuple[MeasureFailureReason, str]:
    if outcome.stopped:
        return MeasureFailureReason.STOPPED, "The measurement was stopped."
    if outcome.timed_out:
        return MeasureFailureReason.TIMED_OUT, f"The kernel did not end within {outcome.duration_s:.0f} s."
    error = next((event for event in events if event.get("event") == "error"), None)
    if error is not None:
        reason = _REASON_OF_ERROR.get(_text(error.get("kind")), MeasureFailureReason.BAD_REPORT)
        differences = "".join(_difference(event) for event in events if event.get("accepted") is False)
        return reason, f"The runner reports: {_text(error.get('message'))}{differences}"
    if outcome.exit_code < 0:
        if fault := _EMULATOR_FAULT.search(outcome.output):
            told = f"The emulator failed, not the kernel, which a device may run: {_text(fault[0])}"
            return MeasureFailureReason.CRASHED, told
        cause = _NOT_ITS_OWN if -outcome.exit_code in (signal.SIGSEGV, signal.SIGBUS) else ""
        return MeasureFailureReason.CRASHED, f"The kernel was ended by {signal_name(-outcome.exit_code)}{cause}."
    lines = outcome.output.strip().splitlines()
    shown = _text(lines[-1]) if lines else "nothing"
    message = f"The runner exited with code {outcome.exit_code} and without a report; it printed: {shown}"
    return MeasureFailureReason.BAD_REPORT, message
