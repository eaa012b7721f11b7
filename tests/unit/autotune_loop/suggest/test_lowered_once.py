"""Without a run, a schedule is lowered once, on all cores, and a generator that fails is an error."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.lowered.lowered_schedule import lowered_schedule
from halide_autotune.autotune_loop.suggest import lowered_once
from halide_autotune.autotune_loop.suggest.lowered_once import LoweredOnce
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.run import GeneratorFailure, GeneratorFailureReason
from halide_autotune.targets.lowering.loop_nest import VERSION, Loop, LoopNest
from halide_autotune.targets.lowering.lower import Lowered, Refused
from halide_autotune.targets.process.stop_signal import StopSignal

DRAFTS = [Draft({str(number): cast(Any, None)}) for number in range(7)]


def text_of(draft: Draft) -> str:
    return next(iter(draft.funcs))


def nest(text: str) -> LoopNest:
    return LoopNest(VERSION, 32, Loop("", "", "root", 1.0, int(text), (), (), ()))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Sequence[str], StopSignal]]:
    """What the generator is asked to lower; it refuses the fourth schedule, and a seventh makes it fail."""
    asked: list[tuple[Sequence[str], StopSignal]] = []

    def lower_schedules(*arguments: Any) -> Lowered | GeneratorFailure:
        texts, stop = arguments[2], arguments[-1]
        asked.append((texts, stop))
        if "6" in texts:
            return GeneratorFailure(GeneratorFailureReason.CRASHED, "It crashed.", "", 1.0)
        return Lowered(tuple(Refused("Not so.") if text == "3" else nest(text) for text in texts), 0.0)

    monkeypatch.setattr(lowered_once, "lower_schedules", lower_schedules)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    return asked


@pytest.fixture
def lowering() -> LoweredOnce:
    inspected = cast(Any, SimpleNamespace(generator_name="blend"))
    return LoweredOnce(inspected, cast(Any, None), cast(Any, None), text_of, cores=4)


def test_each_is_lowered_once_in_as_many_parts_as_there_are_cores(
    lowering: LoweredOnce, asked: list[tuple[Sequence[str], StopSignal]]
) -> None:
    found = lowering.lowered([*DRAFTS[:3], DRAFTS[0]])
    assert found == [lowered_schedule(nest(text), 4) for text in "0120"]
    assert sorted([*texts] for texts, _ in asked) == [["0", "1"], ["2"]]
    assert lowering.lowered(DRAFTS[1:3]) == found[1:3] and len(asked) == 2
    assert lowering.of(DRAFTS[1]) == found[1] and lowering.of(DRAFTS[5]) is None


def test_what_halide_refuses_is_none_and_says_why(
    lowering: LoweredOnce, asked: list[tuple[Sequence[str], StopSignal]]
) -> None:
    assert lowering.first_refusal == ""
    assert [one is None for one in lowering.lowered(DRAFTS[2:5])] == [False, True, False]
    assert lowering.first_refusal == "Not so." and lowering.of(DRAFTS[3]) is None


def test_a_generator_that_fails_is_an_error_and_stops_the_others(
    lowering: LoweredOnce, asked: list[tuple[Sequence[str], StopSignal]]
) -> None:
    with pytest.raises(GeneratorError, match="The schedules of generator blend cannot be lowered: It crashed."):
        lowering.lowered(DRAFTS)
    assert all(stop.is_set() for _, stop in asked)
