"""Cores are divided so that measuring and building do not meet, or take turns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.devices.local.cores import plan_cores

CORES = st.frozensets(st.integers(0, 255), min_size=1, max_size=64)


@given(CORES, st.integers(0, 100))
def test_a_plan_uses_what_there_is_and_takes_turns_only_when_it_must(usable: frozenset[int], threads: int) -> None:
    plan = plan_cores(usable, threads)
    assert plan.build | plan.measure == usable and plan.build
    assert plan.take_turns == (threads >= len(usable))
    if threads == 0:
        assert not plan.measure
    elif not plan.take_turns:
        assert len(plan.measure) == threads and not plan.build & plan.measure
    else:
        assert plan.measure == plan.build == usable
