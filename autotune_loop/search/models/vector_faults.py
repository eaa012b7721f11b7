"""Which vectors make schedules of a pipeline fail: where Halide's code for a target is wrong, or ends in an error."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from random import Random

import numpy as np

from halide_autotune.autotune_loop.draft.edit import loops_of_kind
from halide_autotune.autotune_loop.draft.model import Draft, FuncDraft, LoopKind
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.repair import repair
from halide_autotune.autotune_loop.draft.structure import DraftStructure, Site
from halide_autotune.autotune_loop.schedule.directives import Split

# Vectors of a stage; those of so many elements, with a Func inlined into them or in a place; so many elements anywhere.
Cause = tuple[Site | None, int | str | None]
# The stages with vectors, and what may make each fail.
Causes = Mapping[Site, Sequence[Cause]]
# How often a vector that was never tried makes a schedule fail, before others did; and how often something else does.
_USUAL_RATE, _OTHER_RATE = 0.002, 0.05
# As many vectors as that rate stands for.
_USUAL_COUNT = 10.0
_PASSES = 100
# A schedule that is more likely to fail is changed. With one doubtful vector alone it is tried if it is likelier yet:
# that tells whether the vector is to blame.
_TOO_LIKELY, _TOO_LIKELY_ALONE = 0.5, 0.6
# A vector that is less likely to fail counts as cleared.
_DOUBTFUL = 0.05


class VectorFaults:
    """Learns from the schedules that failed and those that did not.

    A schedule fails if one of its vectors does: how often each does is what explains best what happened (a noisy or,
    by expectation maximisation). So those that are in good schedules, too, are cleared, and others blamed the more.

    Args:
        names: of the pipeline.
        good: of the schedules that were timed, what `causes_of` finds; asked for if any failed.
        failed: of those whose output was wrong, or that could not be compiled or run for what may be a fault of
            vectors.
    """

    def __init__(self, names: PipelineNames, good: Iterable[Causes], failed: Iterable[Causes]) -> None:
        self.names = names
        self._rates: Mapping[Cause, float] = {}
        self._usual_rate = 0.0
        if of_failed := [*failed]:
            self._rates, self._usual_rate = _rates([*good], of_failed)

    def mended(self, draft: Draft, source: Random) -> Draft:
        """The draft with loops in the place of the vectors that most likely fail; the same if it likely does not.

        Which ones is left to chance where it is not known, so that others are tried the next time.
        """
        left, taken = dict(causes_of(draft, self.names)) if self._rates else {}, list[Site]()
        while self._is_too_likely(left.values()):
            (site,) = source.choices([*left], [self._likelihood([causes]) for causes in left.values()])
            del left[site]
            taken.append(site)
        if not taken:
            return draft
        for site in taken:
            func = draft.funcs[site.func]
            stage = func.stages[site.stage]
            for loop in loops_of_kind(stage, LoopKind.VECTORIZED):
                stage = stage.with_kind(loop, None)
            draft = draft.with_func(site.func, func.with_stage(site.stage, stage))
        return repair(draft, self.names)

    def _is_too_likely(self, vectors: Collection[Collection[Cause]]) -> bool:
        likelihood = self._likelihood(vectors)
        if likelihood <= _TOO_LIKELY:
            return False
        is_alone = sum(self._likelihood([causes]) > _DOUBTFUL for causes in vectors) == 1
        return likelihood > _TOO_LIKELY_ALONE or not is_alone

    def _likelihood(self, vectors: Iterable[Iterable[Cause]]) -> float:
        causes = {cause for of_one in vectors for cause in of_one}
        return 1 - math.prod(1 - self._rates.get(cause, self._usual_rate) for cause in causes)


def causes_of(draft: Draft, names: PipelineNames) -> Causes:
    """The stages of a schedule with vectors, and what may make each fail."""
    structure = DraftStructure(draft, names)
    causes: dict[Site, list[Cause]] = {}
    for name, func in draft.funcs.items():
        for index, stage in enumerate(func.stages):
            loops = loops_of_kind(stage, LoopKind.VECTORIZED)
            if not loops or func.is_inlined:
                continue
            factors = {made.inner: made.factor for made in stage.transforms if isinstance(made, Split)}
            known = [factors.get(loop) for loop in loops]
            lanes = math.prod(factor for factor in known if isinstance(factor, int))
            site = Site(name, index)
            causes[site] = [(site, None), (site, lanes), (None, lanes)]
            causes[site] += [(site, each) for each in structure.inlined_into(name)]
            causes[site].append((site, _place(func)))
    return causes


def _place(func: FuncDraft) -> str:
    """Where a Func is computed, and whether it is kept for longer than it is computed at once."""
    of = "" if func.compute is None else func.compute.func or ""
    return f"computed in {of}" if func.store is None else f"computed in {of}, kept"


def _rates(good: Sequence[Causes], failed: Sequence[Causes]) -> tuple[dict[Cause, float], float]:
    """How often each cause makes a schedule fail, and how often one that was never tried does."""
    of_good, of_failed = ([{*itertools.chain(*sites.values())} for sites in drafts] for drafts in (good, failed))
    tries = Counter(itertools.chain(*of_good, *of_failed))
    places = {cause: place for place, cause in enumerate(sorted(tries, key=str))}
    has = np.zeros((len(failed), len(tries)))
    for row, causes in zip(has, of_failed, strict=True):
        row[[places[cause] for cause in causes]] = 1
    counts = np.array([tries[cause] for cause in places])
    usual, rates = _USUAL_RATE, np.full(len(tries), _USUAL_RATE)
    for _ in range(_PASSES):
        likelihood = 1 - (1 - _OTHER_RATE) * np.exp(has @ np.log1p(-rates))
        rates = (rates * (has.T @ (1 / likelihood)) + usual) / (counts + 1)
        usual = float(rates.sum() + _USUAL_COUNT * _USUAL_RATE) / (len(tries) + _USUAL_COUNT)
    return dict(zip(places, rates.tolist(), strict=True)), usual
