"""What a run starts from is made once, and no sooner than it is asked for."""

from __future__ import annotations

from itertools import islice
from random import Random

from halide_autotune.autotune_loop.candidate import Origin
from halide_autotune.autotune_loop.search.models.population import InUse, Population
from halide_autotune.autotune_loop.search.techniques.starts import Starts
from tests.drafted_pipelines import plain_draft, recorded


def test_each_sketch_is_made_once_when_it_is_asked_for() -> None:
    starts, population = Starts(), Population(recorded("separable_filter"), (), {}, 4)
    first = [*islice(starts.propose(population, 2, Random(0)), 2)]
    again = [*starts.propose(population, 2, Random(0))]
    assert len(again) > 2
    assert [one.draft for one in again[:2]] == [one.draft for one in first]
    assert all(one.draft is other.draft for one, other in zip(first, again, strict=False))
    assert [*starts.propose(population, 2, Random(0))] == again


def test_the_generators_own_schedule_comes_first() -> None:
    names = recorded("separable_filter")
    own = plain_draft(names)
    first, second, *_ = Starts().propose(
        Population(names, (), {}, 4, in_use=InUse(Origin.OWN_SCHEDULE, own)), 2, Random(0)
    )
    assert first.draft is own
    assert first.moves == (Origin.OWN_SCHEDULE.value,)
    assert second.moves == ("rows",)


def test_what_is_fast_at_another_size_comes_before_sketches() -> None:
    names = recorded("separable_filter")
    fastest = plain_draft(names)
    first, second, *_ = Starts().propose(Population(names, (), {}, 4, siblings=[fastest]), 2, Random(0))
    assert first.draft is fastest and first.moves == ("of another size",)
    assert second.moves == ("rows",)
