"""Boards' times are brought to one scale, and a board that no single factor describes is named."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.autotune_loop.execute.device_session import Timing
from halide_autotune.autotune_loop.measure.calibration import Calibration
from halide_autotune.autotune_loop.store.board_factor import LARGEST_SCATTER, ReferenceTime, board_factor
from halide_autotune.autotune_loop.store.run_database import RunDatabase
from halide_autotune.devices.device import Clock
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.timing.measure_settings import MeasureSettings
from halide_autotune.devices.timing.measurement import Measurement

# Milliseconds of three schedules, as two boards of one kind and one with a small cache have them.
SCALE_MS = {"reference": 4.0, "greedy": 2.5, "random": 7.0}


def times(scale_ms: dict[str, float], speed: float = 1.0, noise: float = 0.0) -> dict[str, ReferenceTime]:
    return {name: ReferenceTime(ms * speed, ms * speed * noise) for name, ms in scale_ms.items()}


def timing(device: str, times_ms: dict[str, float], epoch: str = "boot/1", jitter: float = 0.001) -> Timing:
    """What a device_session answers, with the references' times of that device."""
    source = random.Random(device + epoch)

    def measured(name: str) -> Measurement:
        repetitions_s = tuple(times_ms[name] * 1e-3 * source.gauss(1, jitter) for _ in range(15))
        return Measurement(name, device, Clock.WALL, repetitions_s, "precision", False)

    return Timing(measured(next(iter(times_ms))), 0.1, epoch, tuple(map(measured, times_ms)))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[RunDatabase]:
    made = RunDatabase(tmp_path / "tuning.db")
    yield made
    made.close()


@given(
    speed=st.floats(0.05, 20),
    odd=st.floats(0.3, 3),
    which=st.sampled_from(sorted(SCALE_MS)),
    others=st.lists(st.floats(0.98, 1.02), min_size=3, max_size=3),
)
def test_one_odd_schedule_does_not_move_the_factor_and_is_seen(
    speed: float, odd: float, which: str, others: list[float]
) -> None:
    steady = {name: ms * one for (name, ms), one in zip(SCALE_MS.items(), others, strict=True)}
    board = board_factor(times(SCALE_MS), times({**steady, which: SCALE_MS[which] * odd}, speed))
    assert board.factor == pytest.approx(1 / speed, rel=0.05) and board.schedules == 3
    far = max(odd, 1 / odd) - 1
    if far > LARGEST_SCATTER + 0.1:
        assert not board.fits and board.furthest == which
    if far < LARGEST_SCATTER - 0.1:
        assert board.fits


def test_noise_excuses_as_much_as_it_explains() -> None:
    odd = {**SCALE_MS, "random": SCALE_MS["random"] * 1.5}
    assert not board_factor(times(SCALE_MS), times(odd)).fits
    assert board_factor(times(SCALE_MS), times(odd, noise=0.15)).fits
    alone = board_factor({}, times(SCALE_MS))
    assert (alone.factor, alone.schedules, alone.fits) == (1.0, 0, True)


def test_the_first_board_sets_the_scale_for_the_life_of_the_run_folder(database: RunDatabase) -> None:
    slow = {name: 2 * ms for name, ms in SCALE_MS.items()}
    calibration = Calibration(database)
    assert calibration.factor(0, timing("a", SCALE_MS)) == 1.0
    assert calibration.factor(0, timing("b", slow)) == pytest.approx(0.5, rel=0.01)
    assert calibration.factor(1, timing("b", slow)) == 1.0, "another argument set has a scale of its own"
    # A resumed run has the same reference and other schedules beside it, which join the scale through a board's factor.
    resumed = Calibration(database)
    assert resumed.factor(0, timing("b", {"reference": 8.0, "later": 3.0}, "boot/2")) == pytest.approx(0.5, rel=0.01)
    assert resumed.factor(0, timing("c", {"later": 4.5}, "boot/3")) == pytest.approx(1 / 3, rel=0.01)
    rows = {row.epoch: row for row in database.calibrations() if row.task_index == 0 and row.device != "a"}
    assert rows["boot/1"].board.schedules == 3 and 0 < rows["boot/1"].board.spread < 0.01
    assert rows["boot/3"].times["later"].time_ms == pytest.approx(4.5, rel=0.01)


def test_a_resumed_run_keeps_the_factor_of_a_board_that_has_not_restarted(database: RunDatabase) -> None:
    calibration = Calibration(database)
    calibration.factor(0, timing("a", SCALE_MS))
    known = calibration.factor(0, timing("b", {name: 2 * ms for name, ms in SCALE_MS.items()}))
    # The same epoch: what the references seem to take now is not what its other times were brought to the scale by.
    resumed = Calibration(database)
    assert resumed.factor(0, timing("b", {name: 3 * ms for name, ms in SCALE_MS.items()})) == known
    assert len(database.calibrations()) == 2


def test_a_kernel_is_hopeless_after_longer_on_a_slower_board(database: RunDatabase) -> None:
    calibration = Calibration(database)
    calibration.factor(0, timing("a", SCALE_MS))
    calibration.factor(0, timing("b", {name: 2 * ms for name, ms in SCALE_MS.items()}))
    # Since its restart it is slower still.
    calibration.factor(0, timing("b", {name: 5 * ms for name, ms in SCALE_MS.items()}, "boot/2"))
    settings = MeasureSettings(give_up_over_s=0.008)
    on = {name: calibration.on_board(0, name, settings).give_up_over_s for name in ("a", "b", "unknown")}
    assert on == {"a": 0.008, "b": pytest.approx(0.04, rel=0.01), "unknown": 0.008}
    assert calibration.on_board(1, "b", settings) == settings, "another argument set has a scale of its own"
    assert calibration.on_board(0, "b", MeasureSettings()) == MeasureSettings()


def test_a_board_that_no_factor_describes_is_named_every_time(database: RunDatabase) -> None:
    small_cache = {"reference": 4.4, "greedy": 2.6, "random": 14.0}
    calibration = Calibration(database)
    calibration.factor(0, timing("a", SCALE_MS))
    for one in (calibration, Calibration(database)):
        with pytest.raises(DeviceTrouble, match=r"odd cannot be compared with a: .* random deviates by \d+%") as caught:
            one.factor(0, timing("odd", small_cache))
        assert caught.value.kind is TroubleKind.OUTLIER and caught.value.kind.needs_a_person
    assert calibration.factor(0, timing("b", {name: 3 * ms for name, ms in SCALE_MS.items()})) < 0.34
    assert {name: board.fits for name, board in database.board_factors().items()} == {
        "a": True,
        "odd": False,
        "b": True,
    }
