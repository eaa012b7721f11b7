"""Whatever a runner prints, a measurement is a sane time or a typed failure that can be stored."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.timing.measure import Session, measure_kernel, write_reference
from halide_autotune.devices.timing.measure_settings import KernelInputs, MeasureSettings, Tolerance
from halide_autotune.devices.timing.measurement import (
    Beside,
    MeasureFailure,
    MeasureFailureReason,
    Measurement,
    ReshapedOutput,
)
from halide_autotune.devices.transport import RunOutcome
from halide_autotune.targets.errors import DeviceError
from halide_autotune.targets.process.stop_signal import StopSignal

DEVICE = Device("board", "local", "host", Clock.WALL, 2, uses_host_cores=False)


class ScriptedTransport:
    """A transport whose programs end as they are told to; to measure, nothing else is asked of it."""

    def __init__(self, outcome: RunOutcome | DeviceError) -> None:
        self.outcome = outcome
        self.calls: list[tuple[str, list[str]]] = []

    def push(self, source: Path, name: str) -> None:
        raise NotImplementedError

    def pull(self, name: str, destination: Path) -> None:
        raise NotImplementedError

    def run(self, name: str, arguments: Sequence[str], time_s: float, stop: StopSignal | None = None) -> RunOutcome:
        self.calls.append((name, list(arguments)))
        if isinstance(self.outcome, DeviceError):
            raise self.outcome
        return self.outcome

    def remove(self, name: str) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


def measure(
    output: str, exit_code: int = 0, timed_out: bool = False, stopped: bool = False, beside: str | None = None
) -> Measurement | MeasureFailure:
    transport = ScriptedTransport(RunOutcome(exit_code, timed_out, stopped, output, 1.0))
    session = Session(DEVICE, transport, KernelInputs(), Tolerance())
    result = measure_kernel(session, "batch", "kernel", MeasureSettings(beside=beside), "reference.raw")
    ((_, arguments),) = transport.calls
    assert ("--beside" in arguments) == (beside is not None)
    return result


def check_sane(result: Measurement | MeasureFailure) -> None:
    if isinstance(result, Measurement):
        assert result.repetitions_s and all(math.isfinite(t) and t > 0 for t in result.repetitions_s)
        assert math.isfinite(result.median_s * 1e3) and result.spread_s >= 0
        result.stopped_by.encode()
    else:
        assert result.message and result.message.isprintable()
        result.message.encode()
        result.log.encode()


def timed(values: object, **more: object) -> str:
    return json.dumps({"event": "timed", "repetitions_s": values, "stopped_by": "precision", **more})


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
ENDS = st.tuples(st.integers(-70, 255), st.booleans(), st.booleans())


@given(st.text(), ENDS)
def test_any_output_is_judged(output: str, end: tuple[int, bool, bool]) -> None:
    output = output.encode("utf-8", "replace").decode()
    check_sane(measure(output, *end))


@given(st.sampled_from(["timed", "error", "check", None]), JSON_VALUES, JSON_VALUES, st.integers(-70, 255))
def test_any_report_is_judged(event: str | None, times: object, other: object, exit_code: int) -> None:
    report = {"event": event, "repetitions_s": times, "stopped_by": other, "kind": other, "message": other}
    check_sane(measure(json.dumps(report), exit_code))


@given(st.lists(st.floats(1e-9, 1e6), min_size=1))
def test_good_times_are_kept_as_they_are(times_s: list[float]) -> None:
    result = measure("the kernel talks {\n" + timed(times_s) + "\nand talks")
    assert isinstance(result, Measurement)
    assert result.repetitions_s == tuple(times_s)
    assert (result.kernel, result.device, result.clock, result.output_checked) == ("kernel", "board", Clock.WALL, True)


@pytest.mark.parametrize(
    "values",
    [
        "[]",
        "[NaN]",
        "[1.0, NaN]",
        "[Infinity]",
        "[-Infinity]",
        "[-1]",
        "[0]",
        "[1e-300]",
        "[1e300]",
        "[1" + "0" * 400 + "]",
        "[1" + "0" * 5000 + "]",
        "[true]",
        '["1.0"]',
        "[null]",
        "[[1.0]]",
        "{}",
        "null",
        "1.0",
    ],
)
def test_times_that_are_none_are_a_bad_report(values: str) -> None:
    result = measure(f'{{"event": "timed", "repetitions_s": {values}}}')
    assert isinstance(result, MeasureFailure)
    assert result.reason is MeasureFailureReason.BAD_REPORT


PAIRS: dict[str, object] = {
    "disturbed": [False, True, False],
    "beside": "yardstick",
    "beside_s": [2.0, 2.0, 4.0],
    "beside_disturbed": [False, False, False],
    "beside_first": [True, False, True],
}


def test_a_pair_is_kept_with_its_places() -> None:
    result = measure(timed([1.0, 9.0, 1.0], **PAIRS), beside="yardstick")
    assert isinstance(result, Measurement)
    assert result.beside == Beside("yardstick", (2.0, 2.0, 4.0), (False, False, False), (True, False, True))
    assert result.disturbed == (False, True, False)


@pytest.mark.parametrize(
    "change",
    [
        {"beside_s": [2.0, 2.0]},
        {"beside_s": [2.0, 2.0, 0.0]},
        {"beside_first": [True]},
        {"beside_disturbed": [0, 1, 0]},
        {"disturbed": [True]},
        {"beside": "another kernel"},
        {"beside": 1},
        {"beside": ""},
    ],
)
def test_a_pair_that_does_not_fit_together_is_a_bad_report(change: dict[str, object]) -> None:
    result = measure(timed([1.0, 9.0, 1.0], **PAIRS | change), beside="yardstick")
    assert isinstance(result, MeasureFailure)
    assert result.reason is MeasureFailureReason.BAD_REPORT


def test_a_pair_where_none_was_asked_for_is_a_bad_report() -> None:
    assert isinstance(measure(timed([1.0, 9.0, 1.0], **PAIRS)), MeasureFailure)
    assert isinstance(measure(timed([1.0]), beside="yardstick"), MeasureFailure)


@pytest.mark.parametrize("line", ['{"a":' * 100_000, "{" + "[" * 100_000, '{"event": "timed"', "{}" * 1000, "{\0}"])
def test_lines_that_are_no_report_are_passed_over(line: str) -> None:
    assert isinstance(measure(line + "\n" + timed([1.0])), Measurement)


def test_a_report_with_half_a_character_can_be_stored() -> None:
    check_sane(measure('{"event": "error", "kind": "halide", "message": "\\ud800"}', 1))
    check_sane(measure('{"event": "timed", "repetitions_s": [1], "stopped_by": "\\udfff"}'))


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("halide", MeasureFailureReason.HALIDE_ERROR),
        ("memory", MeasureFailureReason.OUT_OF_MEMORY),
        ("wrong_output", MeasureFailureReason.WRONG_OUTPUT),
        ("overrun", MeasureFailureReason.WRONG_OUTPUT),
        ("io", MeasureFailureReason.DEVICE),
        ("something new", MeasureFailureReason.BAD_REPORT),
    ],
)
def test_the_runners_errors_have_their_reasons(kind: str, reason: MeasureFailureReason) -> None:
    report = json.dumps({"event": "error", "kind": kind, "message": "It is so."})
    result = measure(timed([1.0]) + "\n" + report, exit_code=3)
    assert isinstance(result, MeasureFailure)
    assert result.reason is reason and "It is so." in result.message


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ((-11, False, False), MeasureFailureReason.CRASHED),
        ((-9, True, False), MeasureFailureReason.TIMED_OUT),
        ((-9, False, True), MeasureFailureReason.STOPPED),
        ((1, False, False), MeasureFailureReason.BAD_REPORT),
    ],
)
def test_a_time_before_a_bad_end_does_not_count(end: tuple[int, bool, bool], reason: MeasureFailureReason) -> None:
    result = measure(timed([1.0]), *end)
    assert isinstance(result, MeasureFailure) and result.reason is reason


def test_a_device_in_trouble_is_a_result() -> None:
    transport = ScriptedTransport(DeviceError("The board is gone.", next_step="Plug it in."))
    session = Session(DEVICE, transport, KernelInputs(), Tolerance())
    result = measure_kernel(session, "batch", "kernel", MeasureSettings(), None)
    assert isinstance(result, MeasureFailure)
    assert (result.reason, result.message) == (MeasureFailureReason.DEVICE, "The board is gone. Plug it in.")


def test_the_runner_is_told_everything() -> None:
    inputs = KernelInputs(5, {"in": "3x4"}, {"gain": "0.5"}, {"table": Path("t.raw")})
    transport = ScriptedTransport(RunOutcome(0, False, False, timed([1.0]), 1.0))
    session = Session(DEVICE, transport, inputs, Tolerance(2, 0.1, 0.2, 0.3))
    settings = MeasureSettings(precision=0.05, give_up_over_s=0.25)
    measure_kernel(session, "batch", "kernel", settings, "reference.raw")
    write_reference(session, "batch", "kernel", "reference.raw", 9.0)
    timing, writing = (" ".join(arguments) for _, arguments in transport.calls)
    shared = "--kernel kernel --seed 5 --threads 2 --size in=3x4 --scalar gain=0.5 --input table=input.table.raw"
    assert timing.startswith(shared) and writing == f"{shared} --write-reference reference.raw"
    assert "--reference reference.raw --integer-tolerance 2 --float-relative 0.1" in timing
    assert (
        "--least-common 1.0" in timing
        and "--mismatch-share 0.3" in timing
        and "--precision 0.05" in timing
        and "--give-up-over-s 0.25" in timing
    )


def test_an_output_of_another_shape_is_kept() -> None:
    def compared(**keys: object) -> str:
        shapes = {"output": "out$1", "computed": "64x48", "reference": "64x50", "common": "64x48"}
        return json.dumps({"event": "compared", **shapes, **keys})

    def reshaped(*lines: str) -> tuple[ReshapedOutput, ...]:
        result = measure("\n".join([*lines, timed([1.0])]))
        assert isinstance(result, Measurement)
        return result.reshaped

    other = ReshapedOutput("out", "64x48", "64x50", "64x48")
    shifted = {"computed": "64x48@-2x3", "common": "62x45@0x3"}
    assert reshaped(compared(), compared(reference="64x48")) == (other,)
    assert reshaped(compared(**shifted)) == (ReshapedOutput("out", "64x48@-2x3", "64x50", "62x45@0x3"),)
    forged = ({"computed": "64\nx"}, {"computed": 7.5}, {"common": None}, {"common": "9" * 999}, {"output": "\x1b[2J"})
    assert reshaped(*(compared(**keys) for keys in forged)) == ()


def test_simulated_time_is_taken_once_from_one_thread() -> None:
    device = Device("qemu", "qemu", "arm64", Clock.SIMULATED, 4, uses_host_cores=True)
    line = json.dumps({"event": "timed", "repetitions_s": [0.0015], "stopped_by": "repetitions"})
    transport = ScriptedTransport(RunOutcome(0, False, False, line, 1.0))
    session = Session(device, transport, KernelInputs(), Tolerance())
    result = measure_kernel(session, "batch", "kernel", MeasureSettings(min_repetitions=9), None)
    assert isinstance(result, Measurement)
    assert (result.clock, result.repetitions_s, result.spread_s) == (Clock.SIMULATED, (0.0015,), 0)
    ((_, arguments),) = transport.calls
    assert arguments[arguments.index("--simulated-cores") + 1] == "4" and "--threads" not in arguments
    for option, value in (("--min-repetitions", "1"), ("--max-repetitions", "1"), ("--warm-up-s", "0")):
        assert arguments[arguments.index(option) + 1] == value


def test_a_signal_has_its_name_and_cause() -> None:
    found, other = measure("", -11), measure("", -4)
    assert isinstance(found, MeasureFailure) and isinstance(other, MeasureFailure)
    assert "ended by SIGSEGV: it used memory that is not its own. Either the generator promises" in found.message
    assert other.message == "The kernel was ended by SIGILL."


def test_an_emulator_that_fails_is_not_the_kernels_fault() -> None:
    said = "qemu-riscv64: ../target/riscv/translate.c:213: decode_save_opc: Assertion `ctx->insn_start != NULL' failed."
    found = measure(f"{said}\n", -11)
    assert isinstance(found, MeasureFailure) and found.reason is MeasureFailureReason.CRASHED
    assert found.message == f"The emulator failed, not the kernel, which a device may run: {said}"


@pytest.mark.parametrize(
    "output",
    [
        '{"event": "error", "kind": "halide", "message": "\\u001b[2Jgone\\u0007"}',
        "\x1b]0;title\x07\x1b[2Jgone",
        "{}" + "gone" * 10_000,
    ],
)
def test_nothing_that_a_device_says_moves_a_terminal(output: str) -> None:
    result = measure(output, exit_code=3)
    assert isinstance(result, MeasureFailure) and "gone" in result.message
    assert result.message.isprintable() and len(result.message) < 5000
