"""What a run knows of a small pipeline, made without a generator, a compiler or a device."""

from __future__ import annotations

from functools import cache
from itertools import islice
from pathlib import Path
from random import Random

from halide_autotune.autotune_loop.draft.model import Draft, LoopKind
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.search.models.population import Population, Tried
from halide_autotune.autotune_loop.search.techniques.evolution import Evolution
from halide_autotune.autotune_loop.sketches.sketches import sketches
from halide_autotune.targets.pipeline.shape import read_shape

# As the plug-in described the generator examples/separable_filter.py.
PIPELINE = Path(__file__).with_name("pipeline.json")
_CORES = 4


@cache
def sample_population(count: int) -> Population:
    """So many schedules of a separable filter, with times that follow from how they are made."""
    names = PipelineNames(read_shape(PIPELINE))
    drafts = [sketch.draft for sketch in sketches(names, _CORES)]
    born = _population(names, drafts[:4])
    children = (child.draft for child in Evolution().propose(born, 4 * count, Random(1)))
    for child in islice(children, 8 * count):
        if child not in drafts:
            drafts.append(child)
    return _population(names, drafts[:count])


def _population(names: PipelineNames, drafts: list[Draft]) -> Population:
    tried = [Tried(f"sample_{place}", draft, _time_ms(draft)) for place, draft in enumerate(drafts)]
    return Population(names, tuple(sorted(tried, key=lambda one: one.time_ms)), {}, _CORES)


def _time_ms(draft: Draft) -> float:
    """Vectors and tasks make it faster."""
    time_ms = 8.0
    for func in draft.funcs.values():
        for stage in func.stages:
            time_ms *= 0.7 if stage.first_of_kind(LoopKind.VECTORIZED) else 1.0
            time_ms *= 0.8 if stage.first_of_kind(LoopKind.PARALLEL) else 1.0
    return time_ms
