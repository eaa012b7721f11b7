"""A reduction that is taken apart: its parts are summed at once, each by a task and in vectors, and then together.

Halide's `rfactor` (Suriana et al. 2017) makes a Func of the parts. A draft keeps what belongs to it as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from halide_autotune.autotune_loop.draft.model import AS_IS, Draft, FuncDraft, StageDraft
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.structure import DraftStructure, Site
from halide_autotune.autotune_loop.schedule.check import make_identifier
from halide_autotune.autotune_loop.schedule.directives import (
    ComputeAt,
    Directive,
    Parallel,
    Reorder,
    ReorderStorage,
    RFactor,
    Split,
    Vectorize,
    variables_of,
)
from halide_autotune.autotune_loop.schedule.model import Clone, Intermediate, StageSchedule, Variable, Wrapper
from halide_autotune.autotune_loop.schedule.values import ROOT, LoopLevel, TailStrategy

# A reduction of fewer steps is not worth a second Func.
_FEWEST_STEPS = 256
# So many vectors are summed apart: one alone waits for itself.
_VECTORS = 4


@dataclass(frozen=True)
class Factoring:
    """How a reduction is taken apart.

    Attributes:
        strip: iterations of its outermost loop in one part.
        lanes: values of its innermost loop that are summed apart, as a vector; 1 where there is none, or where the
            reduction has other loops to fill vectors with.
    """

    strip: int
    lanes: int


def can_be_factored(structure: DraftStructure, name: str) -> bool:
    """Whether a Func is one long reduction that can be taken apart."""
    shape, func = structure.shape(name), structure.draft.funcs[name]
    if shape is None or func.origin is not None or len(func.stages) != 2:
        return False
    update = shape.stages[1]
    return update.is_associative and update.steps >= _FEWEST_STEPS


def factoring_for(structure: DraftStructure, name: str, vector: int, parts: int) -> Factoring:
    """So many parts of a Func that can be taken apart, in vectors where none of its arguments is long enough for them.

    Args:
        vector: values of the Func that fill a vector.
    """
    site = Site(name, 1)
    extents, loops = structure.loop_extents(site), structure.names.loops(name, 1)
    pure = [extents[loop.identifier] for loop in loops if not loop.is_reduction]
    reductions = [extents[loop.identifier] for loop in loops if loop.is_reduction]
    has_lanes = not structure.is_scatter(site) and max(pure, default=1) < vector <= reductions[0]
    lanes = vector * min(_VECTORS, reductions[0] // vector) if has_lanes else 1
    strip = -(-reductions[-1] // parts)
    if len(reductions) == 1:  # a part is whole vectors of it
        strip = -(-strip // lanes) * lanes
    return Factoring(strip, lanes)


def factored(structure: DraftStructure, name: str, how: Factoring, vector: int) -> Draft:
    """The draft with a Func taken apart, and what was computed in its loops at the root.

    Args:
        name: of one that can be.
        vector: values of the Func that fill a vector, where its arguments are long enough.
    """
    parts = _Parts(structure, name, how, vector)
    funcs = {each: _at_root(func, name) for each, func in structure.draft.funcs.items()}
    funcs[name] = parts.whole()
    return replace(structure.draft, funcs={**funcs, parts.part_name: parts.part(), parts.all_name: parts.all()})


def is_taken_apart(draft: Draft, name: str) -> bool:
    """Whether a Func is summed in parts as `factored` has it: there is one part, and all of them."""
    return len(_made(draft, name)) == 2


def whole_again(structure: DraftStructure, name: str) -> Draft:
    """The draft with plain loops of a Func that is taken apart."""
    gone = _made(structure.draft, name)
    funcs = {each: func for each, func in structure.draft.funcs.items() if each not in gone}
    for part in gone:
        funcs = {each: _at_root(func, part) for each, func in funcs.items()}
    return replace(structure.draft, funcs={**funcs, name: plain_func(structure.names, name, ROOT)})


def _made(draft: Draft, name: str) -> list[str]:
    """What rfactors make of a Func, and what is made of that."""
    factoring = draft.funcs[name].factoring
    found = [each.intermediate for stage in factoring for each in stage.directives if isinstance(each, RFactor)]
    for each, func in draft.funcs.items():
        if isinstance(func.origin, Wrapper | Clone) and func.origin.of in found:
            found.append(each)
    return found


def plain_func(names: PipelineNames, name: str, compute: LoopLevel | None) -> FuncDraft:
    """A Func of the pipeline with its loops as they are before any scheduling."""
    stages = range(len(names.shapes[name].stages))
    orders = [tuple(variable.identifier for variable in names.loops(name, index)) for index in stages]
    return FuncDraft(compute, tuple(StageDraft((), order) for order in orders))


def _at_root(func: FuncDraft, gone: str) -> FuncDraft:
    if func.compute is not None and func.compute.func == gone:
        return replace(func, compute=ROOT, store=None)
    return replace(func, store=None) if func.store is not None and func.store.func == gone else func


class _Parts:
    """The loops by the names that they have in what is kept, and the directives of both Funcs."""

    def __init__(self, structure: DraftStructure, name: str, how: Factoring, vector: int) -> None:
        self._name = name
        self._how = how
        self._vector = vector
        self.part_name = make_identifier(f"{name}_part", {*structure.draft.funcs})
        self.all_name = make_identifier(f"{name}_parts", {*structure.draft.funcs})
        self._known: dict[str, Variable] = {}
        self._arguments = [self._keep(variable) for variable in structure.names.loops(name, 0)]
        shape = structure.shape(name)
        assert shape is not None
        self._extents = dict(zip(self._arguments, shape.extents, strict=True))
        loops = structure.names.loops(name, 1)
        self._pure = [self._keep(variable) for variable in loops if not variable.is_reduction]
        self._reductions = [self._keep(variable) for variable in loops if variable.is_reduction]
        self._splits: list[Directive] = []
        # What an iteration of is a part: the reduction's loops, and what they are in the intermediate.
        self._steps: list[str] = []
        self._preserved: list[str] = []
        self._take_apart()

    def _keep(self, variable: Variable) -> str:
        kept = Variable(variable.identifier + AS_IS, variable.is_reduction, variable.source)
        self._known[kept.identifier] = kept
        return kept.identifier

    def _new(self, ending: str, *, is_reduction: bool) -> str:
        name = f"{self._name}_{ending}{AS_IS}"
        self._known[name] = Variable(name, is_reduction, name)
        return name

    def _take_apart(self) -> None:
        """The strips of the outermost loop are parts, and so are the lanes of the innermost one."""
        outer, inner = self._split(self._reductions[-1], self._how.strip, "strip")
        self._reductions[-1] = inner
        self._steps.append(outer)
        self._preserved.append(self._new("part", is_reduction=False))
        if self._how.lanes > 1:
            self._reductions[0], lane = self._split(self._reductions[0], self._how.lanes, "lane")
            self._steps.insert(0, lane)
            self._preserved.insert(0, self._new("lane", is_reduction=False))

    def _split(self, loop: str, factor: int, ending: str) -> tuple[str, str]:
        outer, inner = (self._new(f"{ending}{place}", is_reduction=True) for place in "oi")
        self._splits.append(Split(loop, outer, inner, factor, TailStrategy.GUARD_WITH_IF))
        return outer, inner

    def whole(self) -> FuncDraft:
        """The Func itself, which sums the parts."""
        preserved = tuple(zip(self._steps, self._preserved, strict=True))
        factoring = (RFactor(preserved, self.part_name),)
        pure = (ComputeAt(ROOT), *self._nest(self._arguments))
        summed = self._nest(self._arguments, between=self._steps)
        return self._func(self._name, ((0, tuple(self._splits)), (0, factoring), (None, pure), (0, summed)), None)

    def part(self) -> FuncDraft:
        """What `rfactor` makes: one part, small enough for registers or the first cache."""
        level = LoopLevel(self.all_name, self._preserved[-1])
        zero = (ComputeAt(level), *self._in_lanes(self._arguments, ()))
        update = self._in_lanes(self._pure, self._reductions)
        return self._func(self.part_name, ((None, zero), (0, update)), Intermediate())

    def all(self) -> FuncDraft:
        """All parts, each made by a task."""
        copy = (ComputeAt(ROOT), *self._in_lanes(self._arguments, ()), Parallel(self._preserved[-1]))
        return self._func(self.all_name, ((None, copy),), Wrapper(self.part_name, ()))

    def _in_lanes(self, loops: Sequence[str], between: Sequence[str]) -> tuple[Directive, ...]:
        """Vectors of the lanes where there are some, else of the loops."""
        if self._how.lanes <= 1:
            return self._nest(loops, between, self._preserved)
        lane, *outside = self._preserved
        storage = (ReorderStorage((lane, *loops, *outside)),) if loops and not between else ()
        return (*storage, Reorder((lane, *between, *loops, *outside)), Vectorize(lane))

    def _nest(
        self, loops: Sequence[str], between: Sequence[str] = (), outside: Sequence[str] = ()
    ) -> tuple[Directive, ...]:
        """The first loop in vectors where it is long enough, and some loops between its vectors and the rest."""
        if not loops or (self._extents.get(loops[0]) or 0) < self._vector:
            order = (*between, *loops, *outside)
            return (Reorder(order),) if len(order) > 1 else ()
        outer, inner = (self._new(f"vector{place}", is_reduction=False) for place in "oi")
        split = Split(loops[0], outer, inner, self._vector, TailStrategy.GUARD_WITH_IF)
        return (split, Reorder((inner, *between, outer, *loops[1:], *outside)), Vectorize(inner))

    def _func(
        self,
        name: str,
        stages: Sequence[tuple[int | None, tuple[Directive, ...]]],
        origin: Intermediate | Wrapper | None,
    ) -> FuncDraft:
        frozen = tuple(StageSchedule(name, update, directives) for update, directives in stages if directives)
        used = {loop for stage in frozen for directive in stage.directives for loop in variables_of(directive)}
        variables = sorted((self._known[loop] for loop in used), key=lambda one: (one.is_reduction, one.identifier))
        levels = [each.level for stage in frozen for each in stage.directives if isinstance(each, ComputeAt)]
        return FuncDraft(levels[-1], (), origin=origin, frozen=frozen, variables=tuple(variables))
