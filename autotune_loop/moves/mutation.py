"""A child of a draft: one or a few random moves, repaired."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.repair import repaired_child
from halide_autotune.autotune_loop.draft.structure import DraftStructure
from halide_autotune.autotune_loop.draft.work import work_of
from halide_autotune.autotune_loop.moves import (
    blocks,
    cases,
    everywhere,
    levels,
    lookups,
    loops,
    numbers,
    partitioning,
    parts,
    prefetch,
    storage,
)
from halide_autotune.autotune_loop.moves.crossover import crossover
from halide_autotune.autotune_loop.moves.move import Move, MoveContext

# By how often such a child was faster than its parent in trials on Halide's apps.
MOVES = (
    Move("factor", 5.0, numbers.change_factor),
    Move("factors", 1.0, numbers.change_all_factors),
    Move("factors everywhere", 0.5, everywhere.change_factors_everywhere),
    Move("strips everywhere", 0.5, everywhere.strips_everywhere),
    Move("tail", 0.5, numbers.change_tail),
    Move("split", 1.5, loops.split_loop),
    Move("undo split", 1.0, loops.undo_split),
    Move("reorder", 2.0, loops.reorder_loops),
    Move("vectorize", 2.0, loops.vectorize),
    Move("unroll", 3.0, loops.unroll),
    Move("parallel", 1.5, loops.parallelize),
    Move("fuse", 0.5, loops.fuse_for_tasks),
    Move("tile", 1.0, loops.tile),
    Move("compute_with", 1.0, loops.compute_with),
    Move("rfactor", 0.5, parts.rfactor),
    Move("register block", 4.0, blocks.register_block),
    Move("vector lookup", 3.0, lookups.vector_lookup),
    Move("specialize", 1.0, cases.specialize),
    Move("partition", 1.0, partitioning.change_partitioning),
    Move("prefetch", 0.3, prefetch.change_prefetch),
    Move("compute level", 3.0, levels.move_compute),
    Move("store level", 2.0, levels.move_store),
    Move("sliding window", 1.5, levels.slide),
    Move("inline", 2.0, levels.inline),
    Move("stop inlining", 1.5, levels.stop_inlining),
    Move("store_in", 1.0, storage.store_in),
    Move("storage order", 0.5, storage.reorder_storage),
    Move("storage alignment", 0.3, storage.align_storage),
    Move("clone_in", 0.8, storage.copy_for_one),
    Move("in", 0.5, storage.wrap),
    Move("drop copy", 0.5, storage.drop_copy),
)
CROSSOVER = "crossover"
_TRIES = 12
_ROUNDS = 2
# A child may do so many times the work of its parent, as estimated: more is not worth compiling.
_MOST_WORK = 4.0


@dataclass(frozen=True)
class Child:
    """A changed draft.

    Attributes:
        moves: what was done, in order.
    """

    draft: Draft
    moves: tuple[str, ...]


@dataclass(frozen=True)
class _Known:
    """A draft, what follows from it, and how much each Func computes."""

    structure: DraftStructure
    work: Mapping[str, float]

    @property
    def draft(self) -> Draft:
        return self.structure.draft


@dataclass(frozen=True)
class Mutation:
    """Makes children.

    Attributes:
        busy: the share of the time that each Func took in a schedule that was looked into. Where a draft does its work
            is estimated; what was measured counts as much.
    """

    names: PipelineNames
    busy: Mapping[str, float] = field(default_factory=dict)
    _known: dict[int, _Known] = field(default_factory=dict, init=False, compare=False, repr=False)

    def child(self, parent: Draft, source: Random, weights: Mapping[str, float], count: int) -> Child | None:
        """A child by `count` moves; None where none applies.

        All are made in one region, what the first one has changed and its neighbours, so that one may be of use to
        another. Crossover brings regions together.

        Args:
            weights: of the moves by name, instead of their own.
        """
        first = newest = self._followed(parent)
        region: Collection[str] | None = None
        done: list[str] = []
        for _ in range(count):
            if done and region is None:
                region = _region(newest.structure, parent) or None
            changed = self._moved(newest, source, weights, first, region)
            if changed is not None:
                newest, name = changed
                done.append(name)
        return None if newest.draft == parent else Child(newest.draft, tuple(done))

    def changed(self, parent: Draft, made: Draft) -> Draft | None:
        """A draft that was made of the parent otherwise, repaired; None if it is the same or does far more work."""
        of = self._followed(parent)
        found = self._accepted(made, of, [of])
        return None if found is None else found.draft

    def crossed(self, parent: Draft, other: Draft, source: Random) -> Child | None:
        """A child with a part of another parent."""
        into, of_other = self._followed(parent), self._followed(other)
        for _ in range(_TRIES):
            made = crossover(into.structure, other, source)
            if made is None:
                return None
            found = self._accepted(made, into, [into, of_other])
            if found is not None:
                return Child(found.draft, (CROSSOVER,))
        return None

    def _followed(self, parent: Draft) -> _Known:
        """What follows from a parent, worked out once for all of its children."""
        if id(parent) not in self._known:
            structure = DraftStructure(parent, self.names)
            self._known[id(parent)] = _Known(structure, work_of(structure))
        return self._known[id(parent)]

    def _moved(
        self,
        of: _Known,
        source: Random,
        weights: Mapping[str, float],
        first: _Known,
        region: Collection[str] | None,
    ) -> tuple[_Known, str] | None:
        shares = _shares(of.work)
        context = MoveContext(of.structure, source, _mean(self.busy, shares) if self.busy else shares, region)
        for move in _in_random_order(source, weights):
            made = move.apply(context)
            accepted = None if made is None else self._accepted(made, of, [of, first])
            if accepted is not None:
                return accepted, move.name
        return None

    def _accepted(self, made: Draft, parent: _Known, proven: Sequence[_Known]) -> _Known | None:
        """The draft repaired, if it is another one than the parent and does not do far more work than that does."""
        structure = repaired_child(made, self.names, [each.structure for each in proven])
        if structure.draft == parent.draft:
            return None
        known = _Known(structure, work_of(structure))
        return known if sum(known.work.values()) <= _MOST_WORK * sum(parent.work.values()) else None


def _region(structure: DraftStructure, parent: Draft) -> Collection[str]:
    """What was changed in a draft, and its neighbours; nothing if something was only left out."""
    changed = {name for name, func in structure.draft.funcs.items() if parent.funcs.get(name) != func}
    return structure.with_neighbours(changed)


def _in_random_order(source: Random, weights: Mapping[str, float]) -> Iterator[Move]:
    """Every move some times, those of more weight sooner: for some drafts only a few apply.

    Each comes as if it were drawn, by its weight, from those that are left (Efraimidis and Spirakis 2006).
    """
    weighted = [(move, weight) for move in MOVES if (weight := weights.get(move.name, move.weight)) > 0]
    for _ in range(_ROUNDS):
        drawn = [(source.random() ** (1 / weight), move) for move, weight in weighted]
        yield from (move for _, move in sorted(drawn, key=lambda one: -one[0]))


def _mean(one: Mapping[str, float], other: Mapping[str, float]) -> Mapping[str, float]:
    return {name: (one.get(name, 0.0) + other.get(name, 0.0)) / 2 for name in {**one, **other}}


def _shares(work: Mapping[str, float]) -> Mapping[str, float]:
    total = sum(work.values()) or 1.0
    return {name: each / total for name, each in work.items()}
