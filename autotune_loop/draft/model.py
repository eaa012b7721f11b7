"""A draft: a schedule as its loops are, not as the calls that make them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property

from halide_autotune.autotune_loop.schedule.directives import Directive, Fuse, RFactor, Split
from halide_autotune.autotune_loop.schedule.model import (
    Clone,
    Intermediate,
    Origin,
    Parameter,
    StageSchedule,
    Variable,
    Wrapper,
)
from halide_autotune.autotune_loop.schedule.values import LoopLevel


class LoopKind(Enum):
    """How a loop runs, if it is not serial."""

    PARALLEL = "parallel"
    VECTORIZED = "vectorized"
    UNROLLED = "unrolled"


class Partitioning(Enum):
    """Which loops of a stage Halide may compile in parts, with and without boundary conditions."""

    AUTO = "auto"
    INNER = "inner"
    NONE = "none"


# The loops of what a draft keeps as it is have names that end so.
AS_IS = "_as_is"
# What makes loops of others. Each loop has a name of its own: none is used again for what a split leaves.
Transform = Split | Fuse


def made_by(transform: Transform) -> tuple[str, ...]:
    """The loops that a transform makes, the outer one first."""
    return (transform.outer, transform.inner) if isinstance(transform, Split) else (transform.fused,)


def used_by(transform: Transform) -> tuple[str, ...]:
    """The loops that it makes them of."""
    return (transform.old,) if isinstance(transform, Split) else (transform.inner, transform.outer)


@dataclass(frozen=True)
class StageDraft:
    """The loops of one stage.

    Attributes:
        transforms: splits and fusions, in the order in which they are applied.
        order: the loops that result, the innermost first.
        kinds: of those that are not serial.
        also: directives of other kinds, such as `Prefetch`.
        partitioning: Halide may take all loops apart; the innermost one and those over the vectors' argument; none.
    """

    transforms: tuple[Transform, ...]
    order: tuple[str, ...]
    kinds: Mapping[str, LoopKind] = field(default_factory=dict)
    also: tuple[Directive, ...] = ()
    partitioning: Partitioning = Partitioning.AUTO

    def kind(self, loop: str) -> LoopKind | None:
        """How a loop runs; None is serial."""
        return self.kinds.get(loop)

    def first_of_kind(self, kind: LoopKind) -> str | None:
        """The innermost loop of that kind."""
        return next((loop for loop in self.order if self.kinds.get(loop) is kind), None)

    def with_kind(self, loop: str, kind: LoopKind | None) -> StageDraft:
        """The same with a loop of that kind; None makes it serial."""
        kinds = {name: each for name, each in self.kinds.items() if name != loop}
        if kind is not None:
            kinds[loop] = kind
        return replace(self, kinds=kinds)

    def without_kind(self, kind: LoopKind) -> StageDraft:
        """The stage in which all loops of a kind are serial."""
        return replace(self, kinds={loop: each for loop, each in self.kinds.items() if each is not kind})

    def root_of(self, loop: str) -> tuple[str, ...]:
        """The loops, as they are before any scheduling, that a loop is made of."""
        for transform in reversed(self.transforms):
            match transform:
                case Split(old, outer, inner) if loop in (outer, inner):
                    return self.root_of(old)
                case Fuse(inner, outer, fused) if loop == fused:
                    return (*self.root_of(inner), *self.root_of(outer))
        return (loop,)


@dataclass(frozen=True)
class FuncDraft:
    """The schedule of one Func.

    Attributes:
        compute: where it is computed; None is inlined.
        store: where it is stored, if that is further out.
        storage: directives of the Func itself, such as `StoreIn`.
        stages: the pure definition, then the updates.
        origin: of a wrapper, a clone or an rfactor's intermediate; None for the pipeline's own.
        frozen: the stages' directives as they came, where a draft cannot hold them: `stages` is then empty.
        variables: that the frozen directives name.
        cases: the arguments of an output for whose extents at the estimates, from 0 on, it is compiled once more: each
            of their iterations is then code of its own. By their loops.
    """

    compute: LoopLevel | None
    stages: tuple[StageDraft, ...]
    store: LoopLevel | None = None
    storage: tuple[Directive, ...] = ()
    origin: Origin | None = None
    frozen: tuple[StageSchedule, ...] = ()
    variables: tuple[Variable, ...] = ()
    cases: tuple[str, ...] = ()

    @property
    def is_inlined(self) -> bool:
        """Whether it is computed wherever it is used."""
        return self.compute is None and not self.frozen

    @property
    def factoring(self) -> tuple[StageSchedule, ...]:
        """The frozen stages up to the last that makes an rfactor's intermediate."""
        makes = [any(isinstance(each, RFactor) for each in stage.directives) for stage in self.frozen]
        return self.frozen[: len(makes) - makes[::-1].index(True)] if any(makes) else ()

    @property
    def is_factored(self) -> bool:
        """Whether it belongs to an rfactor: its parts only make sense together."""
        is_copy = isinstance(self.origin, Wrapper | Clone) and bool(self.frozen)
        return bool(self.factoring) or isinstance(self.origin, Intermediate) or is_copy

    def with_stage(self, index: int, stage: StageDraft) -> FuncDraft:
        """The same with another stage in that place."""
        return replace(self, stages=(*self.stages[:index], stage, *self.stages[index + 1 :]))

    def levels(self) -> Iterator[LoopLevel]:
        """The loops of others that it names."""
        for level in (self.compute, self.store):
            if level is not None and level.func is not None:
                yield level


@dataclass(frozen=True)
class Draft:
    """A whole schedule.

    Attributes:
        funcs: by identifier: every Func of the pipeline, then wrappers, clones and intermediates.
        parameters: of the pipeline, that expressions name.
    """

    funcs: Mapping[str, FuncDraft]
    parameters: tuple[Parameter, ...] = ()

    def with_func(self, name: str, func: FuncDraft) -> Draft:
        """The same with another schedule of that Func."""
        return replace(self, funcs={**self.funcs, name: func})

    def without_func(self, name: str) -> Draft:
        """The same without a wrapper or clone."""
        return replace(self, funcs={each: func for each, func in self.funcs.items() if each != name})

    @cached_property
    def replacements(self) -> Mapping[str, tuple[tuple[str, frozenset[str]], ...]]:
        """Func → what is called in its place, and by whom; nobody is everybody else."""
        found: dict[str, list[tuple[str, frozenset[str]]]] = {}
        for name, func in self.funcs.items():
            if isinstance(func.origin, Wrapper | Clone):
                found.setdefault(func.origin.of, []).append((name, frozenset(func.origin.consumers)))
        return {of: tuple(each) for of, each in found.items()}
