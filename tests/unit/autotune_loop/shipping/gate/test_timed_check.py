"""A committed schedule is timed beside the default until it is known whether it is as fast as it says."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence

import pytest

from halide_autotune.autotune_loop.shipping.gate.checked_schedule import CheckedSchedule, GateVerdict
from halide_autotune.autotune_loop.shipping.gate.promise import Promise
from halide_autotune.autotune_loop.shipping.gate.reports import figures
from halide_autotune.autotune_loop.shipping.gate.timed_check import TimedCheck
from halide_autotune.autotune_loop.store.published import DEFAULT
from halide_autotune.autotune_loop.store.size_schedules import GENERAL
from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.timing.measurement import Beside, MeasureFailure, MeasureFailureReason, Measurement

HEADER = CheckedSchedule("blur.pi.schedule.h", "arm64", GateVerdict.NOT_TIMED)
Result = Measurement | MeasureFailure


class Board:
    """Times the default in 4 ms and the schedule in less, with noise that is the same for a pair."""

    def __init__(self, speed_up: float, noise: float = 0.01, clock: Clock = Clock.WALL) -> None:
        self.device = Device("pi", "ssh", "arm64", clock, 4, False)
        self.timed: list[tuple[str, str | None]] = []
        self._speed_up, self._noise = speed_up, noise
        self._chance = random.Random(1)

    def __call__(self, name: str, beside: str | None) -> Result:
        self.timed.append((name, beside))
        mood = 1 + self._chance.random()
        schedule_s = 4e-3 * mood / self._speed_up * (1 + self._chance.gauss(0, self._noise))
        if not self.device.clock.is_noisy:
            return self._of(name, 4e-3 if name == "default" else 4e-3 / self._speed_up, None)
        if beside is None:
            return self._of(name, 4e-3 * mood, None)
        return self._of(name, schedule_s, Beside(beside, (4e-3 * mood,) * 3, (False,) * 3, (True,) * 3))

    def _of(self, name: str, time_s: float, beside: Beside | None) -> Measurement:
        return Measurement(name, "pi", self.device.clock, (time_s,) * 3, "precision", True, beside=beside)


def check(
    board: Board,
    promised: float | None,
    *,
    time: Callable[[str, str | None], Result] | None = None,
    unbuilt: Sequence[str] = (),
    turns: int = 1000,
    than: str = DEFAULT,
) -> CheckedSchedule:
    left = itertools.chain(itertools.repeat(1.0, turns), itertools.repeat(0.0))
    return TimedCheck(
        device=board.device,
        other="default",
        schedule="header",
        unbuilt=dict.fromkeys(unbuilt, "No."),
        time=time or board,
        promise=Promise(2.0, promised, board.device.clock.value, than=than),
        checked=HEADER,
        tolerance=0.05,
        time_left_s=lambda: next(left),
        tell=lambda text: None,
    ).run()


@pytest.mark.parametrize(
    ("now", "promised", "verdict"),
    [
        (2.0, 2.0, GateVerdict.KEPT),
        (2.4, 2.0, GateVerdict.KEPT),
        (1.95, 2.0, GateVerdict.KEPT),
        (1.8, 2.0, GateVerdict.SLOWER),
        (1.0, 1.0, GateVerdict.KEPT),
        (0.9, 1.0, GateVerdict.SLOWER),
    ],
)
def test_it_may_be_five_per_cent_slower(now: float, promised: float, verdict: GateVerdict) -> None:
    found = check(Board(now), promised)
    assert found.verdict is verdict
    assert found.speed_up is not None and found.speed_up.times == pytest.approx(now, rel=0.03)
    assert found.device == "pi" and found.now_ms is not None
    assert ("the header says 2.000" in found.message) == (found.verdict is GateVerdict.SLOWER and promised == 2.0)


def test_a_sizes_own_schedule_is_compared_with_that_for_all_sizes() -> None:
    found = check(Board(1.8), 2.0, than=GENERAL)
    assert "times as fast as the schedule for all sizes (95 % interval" in found.message
    assert figures(found)[0].endswith("), as the schedule for all sizes")
    unbuilt = check(Board(2.0), 2.0, than=GENERAL, unbuilt=["default"], turns=2)
    assert unbuilt.message == "Undecided: the schedule for all sizes cannot be built: No."


def test_pairs_are_in_random_order_and_the_default_is_timed_alone() -> None:
    board = Board(2.0)
    check(board, 2.0)
    assert {beside for name, beside in board.timed if name == "default"} == {None}
    assert {beside for name, beside in board.timed if name == "header"} == {"default"}
    assert {name for name, _ in board.timed[::2]} == {"default", "header"}


def test_what_is_at_the_limit_is_not_decided_by_luck() -> None:
    found = check(Board(2.0 / 1.05, noise=0.05), 2.0)
    assert found.verdict is GateVerdict.UNDECIDED
    assert found.message.startswith("Undecided: 64 turns do not show whether that is the 2.000 of the header; it is ")


def test_a_clock_without_noise_needs_one_turn() -> None:
    board = Board(2.0, clock=Clock.SIMULATED)
    assert check(board, 2.0).verdict is GateVerdict.KEPT and len(board.timed) == 2
    slower = check(Board(1.9, clock=Clock.SIMULATED), 2.0)
    assert slower.verdict is GateVerdict.SLOWER and slower.clock == "simulated"


def test_without_time_nothing_is_decided() -> None:
    assert check(Board(2.0), 2.0, turns=0).message == "Undecided: there was no time left for a turn."
    assert check(Board(2.0), 2.0, turns=7).verdict is GateVerdict.UNDECIDED


def test_without_a_default_it_is_run_and_not_compared() -> None:
    board = Board(2.0)
    assert "the header says no speed-up" in check(board, None).message
    assert {name for name, _ in board.timed} == {"header"}
    found = check(Board(2.0), 2.0, unbuilt=["default"])
    assert (found.verdict, found.message) == (GateVerdict.UNDECIDED, "Undecided: the default cannot be built: No.")


@pytest.mark.parametrize(
    ("kernel", "reason", "verdict"),
    [
        ("header", MeasureFailureReason.WRONG_OUTPUT, GateVerdict.WRONG),
        ("header", MeasureFailureReason.CRASHED, GateVerdict.WRONG),
        ("default", MeasureFailureReason.CRASHED, GateVerdict.UNDECIDED),
        ("header", MeasureFailureReason.DEVICE, GateVerdict.NO_DEVICE),
        ("default", MeasureFailureReason.DEVICE, GateVerdict.NO_DEVICE),
    ],
)
def test_a_failure_is_the_schedules_the_defaults_or_the_devices(
    kernel: str, reason: MeasureFailureReason, verdict: GateVerdict
) -> None:
    board = Board(2.0)

    def time(name: str, beside: str | None) -> Result:
        return MeasureFailure(name, "pi", reason, "It failed.", "") if name == kernel else board(name, beside)

    found = check(board, 2.0, time=time)
    assert found.verdict is verdict and "It failed." in found.message


def test_what_cannot_be_built_is_stale() -> None:
    found = check(Board(2.0), 2.0, unbuilt=["header"])
    assert (found.verdict, found.message) == (GateVerdict.STALE, "It cannot be built: No.")
