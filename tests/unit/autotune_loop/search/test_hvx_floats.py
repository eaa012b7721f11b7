"""What one cheap schedule for Hexagon tells of floats in HVX's vectors."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from halide_autotune.autotune_loop.events import Event, Notice
from halide_autotune.autotune_loop.search.hvx_floats import check_hvx_floats, has_float_vectors, may_have_float_vectors
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.run import GeneratorFailure, GeneratorFailureReason
from halide_autotune.targets.profile.loader import load_profile
from tests.scripted_executor import ScriptedExecutor


def check(
    profile: str, found: bool | GeneratorFailure, device: str = "qemu", technique: str = "sampling,evolution"
) -> list[str]:
    """What a run of that profile is told whose schedule compiles so."""
    heard: list[Event] = []
    context = SimpleNamespace(
        spec=SimpleNamespace(options=RunOptions.of(technique=technique.split(","))),
        profile=load_profile(profile),
        tasks=[SimpleNamespace(reference=SimpleNamespace(name="blend"))],
        devices=[SimpleNamespace(kind=device)],
        workspace=SimpleNamespace(work_folder=Path("work")),
    )
    store = cast(Any, SimpleNamespace(updated_weights=Path("w")))
    with contextlib.closing(ScriptedExecutor(lambda task: found)) as executor:
        check_hvx_floats(executor, store, cast(Any, context), 0, heard.append)
    assert has_float_vectors(cast(Any, context)) is (profile == "x86-64" or (profile, device) == ("hexagon-v68", "dsp"))
    return [event.text for event in heard if isinstance(event, Notice)]


def failed(reason: str) -> GeneratorFailure:
    return GeneratorFailure(GeneratorFailureReason(reason), "It does not compile.", "", 1.0)


def test_without_a_device_the_version_of_hvx_decides() -> None:
    targets = {name: load_profile(name).halide_target for name in ("x86-64", "hexagon-v66", "hexagon-v68")}
    assert [may_have_float_vectors(target) for target in targets.values()] == [True, False, True]


@pytest.mark.parametrize("found", [True, failed("failed"), failed("crashed")])
def test_floats_stay_out_of_vectors_that_cannot_hold_them(found: bool | GeneratorFailure) -> None:
    for profile in ("hexagon-v66", "hexagon-v68"):  # QEMU cannot run those of v68
        (told,) = check(profile, found)
        assert "blend computes with floats" in told and profile in told and "only where no float is" in told


def test_halides_search_alone_cannot_keep_them_out() -> None:
    with pytest.raises(GeneratorError, match="blend computes with floats.* hexagon-v66") as raised:
        check("hexagon-v66", failed("crashed"), technique="sampling")
    assert "other techniques than sampling" in raised.value.next_step


@pytest.mark.parametrize("reason", ["timed out", "out of memory", "stopped"])
def test_what_takes_too_much_to_compile_may_have_none(reason: str) -> None:
    assert check("hexagon-v66", failed(reason)) == []


def test_nothing_is_told_where_there_are_none_or_they_can_be_run() -> None:
    assert check("hexagon-v66", False) == check("hexagon-v68", False) == []
    assert check("hexagon-v68", failed("crashed"), device="dsp") == []
    assert check("x86-64", True) == []
