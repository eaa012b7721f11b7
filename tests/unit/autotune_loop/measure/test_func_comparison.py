"""The Funcs of several schedules side by side, and where Halide's profiler is not asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from halide_autotune.autotune_loop.measure.func_comparison import FuncRow, check_profiler, func_rows
from halide_autotune.devices.device import Clock, Device
from halide_autotune.devices.timing.func_times import FuncTime, FuncTimes
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.profile.loader import load_profile

BOARD = Device("pi", "ssh", "arm64", Clock.WALL, 4, uses_host_cores=False)


def times(call_s: float, **shares: float) -> FuncTimes:
    funcs = tuple(FuncTime(name, share * call_s, 1.0, 0, 0) for name, share in shares.items())
    return FuncTimes("kernel", "pi", call_s, 1000, funcs)


def test_the_largest_share_of_any_schedule_comes_first_and_small_ones_together() -> None:
    own = times(2.0, blur=0.25, out=0.746, malloc=0.004)
    tuned = times(1.0, out=0.997, malloc=0.001, free=0.002)
    *rows, others = func_rows([own, tuned])
    assert rows == [FuncRow("out", (1.492, 0.997)), FuncRow("blur", (0.5, None))]
    assert others.name == "2 others" and others.times_s == pytest.approx((0.008, 0.003))
    assert func_rows([]) == []


@pytest.mark.parametrize(
    ("profile", "clock", "words"),
    [
        ("arm64", Clock.SIMULATED, "needs a real device's clock, and pi has simulated time, not a device's"),
        ("hexagon-v66", Clock.CYCLES, "needs a real device's clock, and pi has the DSP's processor cycles"),
        ("cuda-sm80", Clock.WALL, "sees nothing of what a card does"),
    ],
)
def test_who_is_not_asked(settings: Settings, profile: str, clock: Clock, words: str) -> None:
    with pytest.raises(UsageError, match=words) as told:
        check_profiler(load_profile(profile, settings.profile_folder), [BOARD, replace(BOARD, clock=clock)])
    assert "leave out --by-func" in told.value.next_step
    check_profiler(load_profile("arm64", settings.profile_folder), [BOARD])
