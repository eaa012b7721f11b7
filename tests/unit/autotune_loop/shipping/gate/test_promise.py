"""What a header says of its speed."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.autotune_loop.shipping.gate.promise import Promise
from halide_autotune.autotune_loop.store.published import SpeedUp
from halide_autotune.autotune_loop.store.size_schedules import GENERAL
from halide_autotune.devices.timing.measure_settings import KernelInputs
from halide_autotune.targets.errors import RunFolderError

FACTS = {"tuned_ms": 2.0, "default_ms": 3.0, "clock": "wall"}


def test_a_play_off_against_the_default_is_better_known_than_two_medians() -> None:
    assert Promise.of(FACTS, "f").speed_up == 1.5
    assert Promise.of({**FACTS, "speed_up": 1.6, "speed_up_than": "default"}, "f").speed_up == 1.6
    assert Promise.of({**FACTS, "speed_up": 1.1, "speed_up_than": "own"}, "f").speed_up == 1.5
    assert Promise.of({**FACTS, "default_ms": None}, "f").speed_up is None


def test_the_default_of_other_parameters_is_not_what_is_timed_today() -> None:
    facts = {**FACTS, "speed_up": 1.6, "default_parameters": "vector=1", "tuned_parameters": "vector=16"}
    for said in ("default parameters", "incumbent"):
        assert Promise.of({**facts, "speed_up_than": said}, "f").speed_up is None
    assert Promise.of({**facts, "speed_up_than": "default parameters", "size": "input=96x64"}, "f").speed_up is None


def test_a_sizes_own_schedule_is_faster_than_that_for_all_sizes() -> None:
    facts = {**FACTS, "default_ms": None, "speed_up": 1.6, "size": "input=96x64"}
    for said in ({}, {"speed_up_than": GENERAL}):  # earlier versions did not say it
        assert Promise.of({**facts, **said}, "f", GENERAL).speed_up == 1.6
    assert Promise.of({**facts, "speed_up_than": GENERAL}, "f").speed_up is None


@pytest.mark.parametrize("wrong", [{"tuned_ms": None}, {"tuned_ms": "fast"}, {"default_ms": 0}, {"tuned_ms": -1.0}])
def test_a_figure_that_cannot_be_is_told_with_its_place(wrong: dict[str, object]) -> None:
    with pytest.raises(RunFolderError, match=r"^ship\.json: blur\.h: (tuned|default)_ms is "):
        Promise.of({**FACTS, **wrong}, "ship.json: blur.h")


@given(st.dictionaries(st.sampled_from([*FACTS, "speed_up", "speed_up_than", "size", "sizes"]), st.none() | st.text()))
def test_any_facts_are_a_promise_or_one_error(facts: dict[str, object]) -> None:
    with contextlib.suppress(RunFolderError):
        Promise.of({**FACTS, **facts}, "f")


@pytest.mark.parametrize(
    ("low", "high", "kept"),
    [(1.95, 2.05, True), (1.91, 9.0, True), (1.8, 1.9, False), (1.8, 2.1, None), (None, None, None), (1.8, None, None)],
)
def test_the_whole_interval_decides(low: float | None, high: float | None, kept: bool | None) -> None:
    assert Promise(1.0, 2.0, "wall").is_kept(SpeedUp(2.0, "default", low, high), 0.05) is kept


def test_figures_of_several_sizes_are_timed_at_these() -> None:
    known = KernelInputs(sizes={"input": "640x480"}, scalars={"gain": "1"})
    assert Promise.of(FACTS, "f").called_with(known) == known
    several = Promise.of({**FACTS, "sizes": "2 ms at the estimates; 1 ms at input=320x240"}, "f")
    assert several.called_with(known) == KernelInputs(
        known.seed, known.sizes, known.scalars, also_sizes=("input=320x240",)
    )
    one = Promise.of({**FACTS, "size": "input=320x240 gain=2"}, "f").called_with(known)
    assert (one.sizes, one.scalars, one.also_sizes) == ({"input": "320x240"}, {"gain": "2"}, ())
