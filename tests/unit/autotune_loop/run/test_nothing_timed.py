"""What is said where every schedule failed."""

from __future__ import annotations

import pytest

from halide_autotune.autotune_loop.run.nothing_timed import nothing_timed
from halide_autotune.targets.profile.loader import load_profile

X86, HEXAGON = "x86-64", "hexagon-v66"


def test_every_kind_of_failure_is_counted_and_the_last_one_is_told() -> None:
    error = nothing_timed("blur", load_profile(X86), {"build: crashed": 3, "search: timed out": 1}, "It crashed.")
    assert error.message == (
        "None of the first schedules of blur could be timed (3 × build: crashed, 1 × search: timed out)."
    )
    assert error.next_step == "The last failure: It crashed."


@pytest.mark.parametrize(
    ("failures", "target", "told", "not_told"),
    [
        ({"build: timed out": 2, "search: timed out": 1}, X86, "--search-limit", "--input"),
        ({"measure: wrong output": 16}, X86, "--input NAME=FILE.npy", "vector code"),
        (
            {"build: failed": 13, "measure: wrong output": 3},
            HEXAGON,
            "vector code for hexagon-v66",
            "--budget",
        ),
    ],
)
def test_the_advice_follows(failures: dict[str, int], target: str, told: str, not_told: str) -> None:
    next_step = nothing_timed("blur", load_profile(target), failures, "The last.").next_step
    assert told in next_step and not_told not in next_step
