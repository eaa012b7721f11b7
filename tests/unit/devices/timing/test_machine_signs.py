"""What a runner says of its machine is kept if it can be true, and whatever it says harms nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.timing.machine_signs import MachineSigns, read_signs, read_surroundings
from halide_autotune.devices.timing.measure import Session, look_around, measure_kernel
from halide_autotune.devices.timing.measure_settings import KernelInputs, MeasureSettings, Tolerance
from halide_autotune.devices.timing.measurement import Measurement
from halide_autotune.devices.transport import RunOutcome
from halide_autotune.targets.process.stop_signal import StopSignal
from tests import device_replies
from tests.device_replies import BUSIEST

SIGNS: dict[str, object] = {**device_replies.SIGNS, "hottest_c": 91.5}
ANYTHING = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=50) | st.lists(st.integers())


def test_signs_are_read() -> None:
    signs = read_signs([{"event": "timed"}, SIGNS])
    assert signs == MachineSigns(0.5, 2, 0.75, 0.5, 0.0, None, 1.2e9, 2.4e9, 91.5)
    assert signs.others_share == pytest.approx(0.25) and signs.is_slowed_by_heat
    assert read_signs([]) is None


@pytest.mark.parametrize(
    "change",
    [
        {"duration_s": -1.0},
        {"duration_s": float("nan")},
        {"duration_s": None},
        {"cores": 2.5},
        {"cores": 10**9},
        {"busy_s": -0.01},
        {"stolen_s": float("inf")},
        {"hz": 0},
        {"hottest_c": 9e9},
        {"hottest_c": "hot"},
        {"has_priority": "yes"},
    ],
)
def test_signs_that_cannot_be_true_are_none(change: dict[str, object]) -> None:
    assert read_signs([SIGNS | change]) is None
    assert read_surroundings([SIGNS | change, BUSIEST]) is None


@given(
    st.dictionaries(st.sampled_from(sorted(SIGNS)), ANYTHING),
    st.dictionaries(st.sampled_from(sorted(BUSIEST)), ANYTHING),
)
def test_any_report_can_be_judged_and_stored(signs: dict[str, object], busiest: dict[str, object]) -> None:
    found = read_surroundings([SIGNS | signs | {"event": "machine"}, BUSIEST | busiest | {"event": "busiest"}])
    if found is not None:
        json.dumps(asdict(found), allow_nan=False)
        shares = (found.signs.others_share, found.signs.stolen_share, found.signs.waiting_share)
        assert all(0 <= share <= 1 for share in shares)
    if found is not None and found.busiest is not None:
        assert found.busiest.name.isprintable() and len(found.busiest.name) <= 32


def test_a_process_may_call_itself_anything() -> None:
    found = read_surroundings([SIGNS, BUSIEST | {"name": "\x1b[2J\n" + "x" * 100}])
    assert found is not None and found.busiest is not None
    assert found.busiest.name == "[2J " + "x" * 28


class Board:
    """A device whose runner reports as it is told to."""

    def __init__(self, *events: Mapping[str, object], exit_code: int = 0) -> None:
        self.outcome = RunOutcome(exit_code, False, False, "\n".join(map(json.dumps, events)), 1.0)
        self.arguments: list[str] = []

    def push(self, source: Path, name: str) -> None:
        raise AssertionError("nothing is sent")

    def pull(self, name: str, destination: Path) -> None:
        raise AssertionError("nothing is fetched")

    def run(self, name: str, arguments: Sequence[str], time_s: float, stop: StopSignal | None = None) -> RunOutcome:
        self.arguments = list(arguments)
        return self.outcome

    def remove(self, name: str) -> None:
        raise AssertionError("nothing is deleted")

    def close(self) -> None:
        """Nothing to do."""


def session_on(board: Board, clock: Clock) -> Session:
    return Session(Device("pi", "ssh", "arm64", clock, 2, uses_host_cores=False), board, KernelInputs(), Tolerance())


@pytest.mark.parametrize("clock", Clock)
def test_only_a_real_processor_is_asked(clock: Clock) -> None:
    timed = {"event": "timed", "repetitions_s": [1e-3], "disturbed": [False], "stopped_by": "time"}
    board = Board(timed, SIGNS)
    result = measure_kernel(session_on(board, clock), "batch", "f", MeasureSettings(), None)
    assert isinstance(result, Measurement)
    assert ("--machine" in board.arguments) == (clock is Clock.WALL) == (result.machine is not None)


def test_a_look_around_times_nothing() -> None:
    board = Board(SIGNS, BUSIEST)
    found = look_around(session_on(board, Clock.WALL), "batch")
    assert found is not None and found.busiest is not None and found.busiest.pid == 42
    assert board.arguments == ["--neighbours", "1.0"]
    assert look_around(session_on(Board(SIGNS, exit_code=2), Clock.WALL), "batch") is None
