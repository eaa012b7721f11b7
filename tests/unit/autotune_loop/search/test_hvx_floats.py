"""What one cheap schedule for Hexagon tells of floats in HVX's vectors."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from autotune_loop.search.hvx_floats import check_hvx_floats
from targets.errors import GeneratorError
from targets.generator.run import GeneratorFailure, GeneratorFailureReason
from targets.profile.loader import load_profile
from tests.scripted_executor import ScriptedExecutor


def check(profile: str, found: bool | GeneratorFailure, device: str = "qemu") -> None:
    """As for a run of that profile whose schedule compiles so."""
    context = SimpleNamespace(
        profile=load_profile(profile),
        tasks=[SimpleNamespace(reference=SimpleNamespace(name="blend"))],
        devices=[SimpleNamespace(kind=device)],
        workspace=SimpleNamespace(work_folder=Path("work")),
    )
    with contextlib.closing(ScriptedExecutor(lambda task: found)) as executor:
        check_hvx_floats(executor, cast(Any, SimpleNamespace(updated_weights=Path("w"))), cast(Any, context), 0)


def failed(reason: str) -> GeneratorFailure:
    return GeneratorFailure(GeneratorFailureReason(reason), "It does not compile.", "", 1.0)


NO_FLOATS = "blend does not compile.* floating point, .* hexagon-v66"


@pytest.mark.parametrize("reason", ["failed", "crashed"])
def test_where_there_are_no_vectors_of_floats_a_failure_is_theirs(reason: str) -> None:
    with pytest.raises(GeneratorError, match=NO_FLOATS):
        check("hexagon-v66", failed(reason))


@pytest.mark.parametrize("reason", ["timed out", "out of memory", "stopped"])
def test_what_takes_too_much_to_compile_there_may_have_none(reason: str) -> None:
    check("hexagon-v66", failed(reason))


def test_vectors_of_floats_are_for_a_dsp_that_has_them() -> None:
    for found in (True, failed("timed out"), failed("crashed")):
        with pytest.raises(GeneratorError, match="blend .*vectors of floats, .*QEMU"):
            check("hexagon-v68", found)
        check("hexagon-v68", found, device="hexagon-sim")
    check("hexagon-v68", failed("stopped"))
    check("hexagon-v68", False)
    check("hexagon-v66", False)


def test_other_targets_have_floats() -> None:
    check("x86-64", True)
