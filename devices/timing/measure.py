"""Time one kernel of a pushed executable: run the runner, read its report, judge."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from devices.device import Clock, Device
from devices.device_trouble import DeviceTrouble, TroubleKind
from devices.file_name import check_name
from devices.timing.measure_settings import KernelInputs, MeasureSettings, Tolerance
from devices.timing.measurement import MeasureFailure, MeasureFailureReason, Measurement
from devices.timing.runner_events import read_events
from devices.transport import RunOutcome, Transport
from targets.errors import DeviceError
from targets.process.limited_process import signal_name
from targets.process.stop_signal import StopSignal

_REASON_OF_ERROR = {
    "usage": MeasureFailureReason.WRONG_ARGUMENTS,
    "halide": MeasureFailureReason.HALIDE_ERROR,
    "memory": MeasureFailureReason.OUT_OF_MEMORY,
    "gpu": MeasureFailureReason.DEVICE,
    # Of the launcher on a phone: its DSP has run nothing; or has ended without a word.
    "dsp": MeasureFailureReason.DEVICE,
    "crash": MeasureFailureReason.CRASHED,
    "overrun": MeasureFailureReason.WRONG_OUTPUT,
    "wrong_output": MeasureFailureReason.WRONG_OUTPUT,
    # A file beside the executable: the reference's outputs, or an input. No kernel has to do with those.
    "io": MeasureFailureReason.DEVICE,
}
_NOT_ITS_OWN = (
    ": it used memory that is not its own. Either the generator promises too much (unsafe_promise_clamped, a promise "
    "about a buffer), or the schedule has more on the stack than there is"
)
# Times outside these are a fault of the report, whatever the kernel.
_SHORTEST_S = 1e-9
# A simulated call takes as long as the one before, once the caches are as the calls leave them.
_SIMULATED_TIME_ARGUMENTS = (
    "--warm-up-s 0 --precision 0 --min-repetition-s 0 --min-repetitions 2 --max-repetitions 2 --max-time-s 1000000"
).split()
_LONGEST_S = 1e6


@dataclass(frozen=True)
class Session:
    """One device in use: its transport and what every kernel is called with."""

    device: Device
    transport: Transport
    inputs: KernelInputs
    tolerance: Tolerance

    def input_arguments(self) -> list[str]:
        """The runner's options for the kernel's arguments."""
        # The simulated clock follows one thread only.
        cores = "--simulated-cores" if self.device.clock is Clock.SIMULATED else "--threads"
        arguments = ["--seed", str(self.inputs.seed), cores, str(self.device.threads)]
        for name, size in self.inputs.sizes.items():
            arguments += ["--size", f"{name}={size}"]
        for name, value in self.inputs.scalars.items():
            arguments += ["--scalar", f"{name}={value}"]
        if self.inputs.exact_outputs:
            arguments.append("--exact-outputs")
        for name in self.inputs.files:
            arguments += ["--input", f"{name}={input_file_name(name)}"]
        return arguments

    def push_inputs(self) -> None:
        """Send the input files to the device."""
        for name, path in self.inputs.files.items():
            self.transport.push(path, input_file_name(name))


def input_file_name(argument: str) -> str:
    """The name an argument's input file has on the device."""
    return check_name(f"input.{argument}.raw")


def write_reference(
    session: Session,
    executable: str,
    kernel: str,
    reference: str,
    time_s: float,
    stop: StopSignal | None = None,
) -> MeasureFailure | None:
    """Run `kernel` once and keep its outputs on the device as the file `reference`; None when it worked."""
    arguments = ["--kernel", kernel, *session.input_arguments(), "--write-reference", check_name(reference)]
    outcome = session.transport.run(executable, arguments, time_s, stop)
    if outcome.exit_code == 0 and not outcome.timed_out and not outcome.stopped:
        return None
    return _failure(session.device, kernel, outcome, read_events(outcome.output))


def check_output(
    session: Session, executable: str, kernel: str, reference: str, time_s: float, stop: StopSignal | None = None
) -> MeasureFailure | None:
    """Compare the kernel's output with the reference file, without timing it; None when it is the same.

    Raises:
        DeviceError: the device cannot be used.
    """
    arguments = ["--kernel", kernel, *session.input_arguments(), "--reference", check_name(reference)]
    arguments += _tolerance_arguments(session.tolerance)
    outcome = session.transport.run(executable, arguments, time_s, stop)
    if outcome.exit_code == 0 and not outcome.timed_out and not outcome.stopped:
        return None
    return _failure(session.device, kernel, outcome, read_events(outcome.output))


def list_kernels(session: Session, executable: str, time_s: float) -> list[dict[str, Any]]:
    """What the runner says of the kernels in it: their names and arguments. It is not to be trusted.

    Raises:
        DeviceError: the device cannot be used.
    """
    outcome = session.transport.run(executable, ["--list"], time_s, None)
    return [event for event in read_events(outcome.output) if event.get("event") == "kernel"]


def measure_kernel(
    session: Session,
    executable: str,
    kernel: str,
    settings: MeasureSettings,
    reference: str | None,
    stop: StopSignal | None = None,
) -> Measurement | MeasureFailure:
    """Compare the kernel's output with the reference file, then time it. A device's trouble is a result too."""
    arguments = ["--kernel", kernel, *session.input_arguments()]
    if reference is not None:
        arguments += ["--reference", check_name(reference), *_tolerance_arguments(session.tolerance)]
    arguments += _time_arguments(settings, session.device.clock)
    try:
        outcome = session.transport.run(executable, arguments, settings.run_limit_s, stop)
    except DeviceError as error:
        return device_failure(kernel, session.device.name, error, under_way=True)
    return _judged(session, kernel, outcome, output_checked=reference is not None)


def device_failure(kernel: str, device_name: str, error: DeviceError, *, under_way: bool) -> MeasureFailure:
    """A schedule that has no time because of its device."""
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


def _judged(
    session: Session, kernel: str, outcome: RunOutcome, *, output_checked: bool
) -> Measurement | MeasureFailure:
    events = read_events(outcome.output)
    timed = next((event for event in events if event.get("event") == "timed"), None)
    if outcome.exit_code != 0 or outcome.timed_out or outcome.stopped or timed is None:
        return _failure(session.device, kernel, outcome, events)
    repetitions_s = _repetitions(timed)
    if repetitions_s is None:
        message = f"The runner's report on {session.device.name} has no usable times."
        return MeasureFailure(kernel, session.device.name, MeasureFailureReason.BAD_REPORT, message, outcome.output)
    return Measurement(
        kernel=kernel,
        device=session.device.name,
        clock=session.device.clock,
        # Simulated times differ by what the first of the calls has found in the caches, and by nothing else.
        repetitions_s=(min(repetitions_s),) if session.device.clock is Clock.SIMULATED else repetitions_s,
        stopped_by=_text(timed.get("stopped_by", "")),
        output_checked=output_checked,
        canary_s=outcome.canary_s,
    )


def _tolerance_arguments(tolerance: Tolerance) -> list[str]:
    return [
        "--integer-tolerance",
        str(tolerance.integer),
        "--float-relative",
        repr(tolerance.float_relative),
        "--float-absolute-scale",
        repr(tolerance.float_absolute_share),
        "--mismatch-share",
        repr(tolerance.mismatch_share),
        "--far-scale",
        repr(tolerance.far_scale),
        "--far-share",
        repr(tolerance.far_share),
    ]


def _time_arguments(settings: MeasureSettings, clock: Clock) -> list[str]:
    if clock is Clock.SIMULATED:
        return ["--time", *_SIMULATED_TIME_ARGUMENTS]
    arguments = ["--time", "--precision", repr(settings.precision)]
    arguments += ["--warm-up-s", repr(settings.warm_up_s), "--max-time-s", repr(settings.max_time_s)]
    arguments += ["--min-repetitions", str(settings.min_repetitions)]
    arguments += ["--max-repetitions", str(settings.max_repetitions)]
    if settings.give_up_over_s is not None:
        arguments += ["--give-up-over-s", repr(settings.give_up_over_s)]
    return arguments


def _text(value: object) -> str:
    # JSON may spell half a surrogate pair, which nothing can store.
    return str(value).encode("utf-8", "replace").decode()


def _repetitions(timed: dict[str, Any]) -> tuple[float, ...] | None:
    values = timed.get("repetitions_s")
    if not isinstance(values, list) or not values:
        return None
    if not all(type(v) in (int, float) and _SHORTEST_S <= v <= _LONGEST_S for v in values):
        return None
    return tuple(float(v) for v in values)


def _failure(device: Device, kernel: str, outcome: RunOutcome, events: Iterable[dict[str, Any]]) -> MeasureFailure:
    events = list(events)
    reason, message = _judge(outcome, events)
    if reason is MeasureFailureReason.DEVICE:
        trouble = DeviceTrouble(TroubleKind.BROKEN, f"{device.name} lacks what every kernel needs. {message}")
        return device_failure(kernel, device.name, trouble, under_way=False)
    return MeasureFailure(kernel, device.name, reason, message, outcome.output)


def _difference(compared: dict[str, Any]) -> str:
    keys = ("mismatches", "elements", "output", "max_absolute_error", "first_mismatch", "expected", "actual")
    mismatches, elements, output, error, place, expected, actual = (_text(compared.get(key)) for key in keys)
    return (
        f" {mismatches} of {elements} elements of {output} differ, by up to {error}; "
        f"the first is at {place}: {expected} was expected, {actual} was found."
    )


def _judge(outcome: RunOutcome, events: list[dict[str, Any]]) -> tuple[MeasureFailureReason, str]:
    if outcome.stopped:
        return MeasureFailureReason.STOPPED, "The measurement was stopped."
    if outcome.timed_out:
        return MeasureFailureReason.TIMED_OUT, f"The kernel did not end within {outcome.duration_s:.0f} s."
    error = next((event for event in events if event.get("event") == "error"), None)
    if error is not None:
        reason = _REASON_OF_ERROR.get(str(error.get("kind")), MeasureFailureReason.BAD_REPORT)
        differences = "".join(_difference(event) for event in events if event.get("accepted") is False)
        return reason, f"The runner reports: {_text(error.get('message'))}{differences}"
    if outcome.exit_code < 0:
        cause = _NOT_ITS_OWN if -outcome.exit_code in (signal.SIGSEGV, signal.SIGBUS) else ""
        return MeasureFailureReason.CRASHED, f"The kernel was ended by {signal_name(-outcome.exit_code)}{cause}."
    lines = outcome.output.strip().splitlines()
    shown = lines[-1] if lines else "nothing"
    return (
        MeasureFailureReason.BAD_REPORT,
        f"The runner exited with code {outcome.exit_code} and no report; it printed: {shown}",
    )
