"""What a run says of its winners."""

from __future__ import annotations

from dataclasses import replace

from halide_autotune.autotune_loop.run.result import TunedSchedule
from halide_autotune.autotune_loop.store.published import NOTHING, ScheduleTime


def test_without_tuning_there_is_the_own_schedule_or_else_the_default() -> None:
    found = TunedSchedule({}, "blur", "Adams2019's")
    assert found.untuned_ms is None
    with_default = replace(NOTHING, default=ScheduleTime(6.98, 0.1))
    assert replace(found, published=with_default).untuned_ms == 6.98
    with_own = replace(with_default, own=ScheduleTime(0.37, 0.01))
    assert replace(found, published=with_own).untuned_ms == 0.37
