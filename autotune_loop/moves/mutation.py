"""A child of a draft: one or a few random moves, repaired."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random

from autotune_loop.draft.model import Draft
from autotune_loop.draft.names import PipelineNames
from autotune_loop.draft.repair import repair
from autotune_loop.draft.structure import DraftStructure
from autotune_loop.draft.work import work_of
from autotune_loop.moves import levels, loops, numbers, parts, storage
from autotune_loop.moves.crossover import crossover
from autotune_loop.moves.move import Move, MoveContext

# By how often such a child was faster than its parent in trials on Halide's apps.
MOVES = (
    Move("factor", 5.0, numbers.change_factor),
    Move("factors", 1.0, numbers.change_all_factors),
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
class Mutation:
    """Makes children.

    Attributes:
        busy: the share of the time that each Func took in a schedule that was looked into. Where a draft does its work
            is estimated; what was measured counts as much.
    """

    names: PipelineNames
    busy: Mapping[str, float] = field(default_factory=dict)

    def child(self, parent: Draft, source: Random, weights: Mapping[str, float], count: int) -> Child | None:
        """A child by `count` moves; None where none applies.

        Args:
            weights: of the moves by name, instead of their own.
        """
        draft, done = parent, []
        for _ in range(count):
            changed = self._moved(draft, source, weights, parent)
            if changed is not None:
                draft, name = changed
                done.append(name)
        return None if draft == parent else Child(draft, tuple(done))

    def crossed(self, parent: Draft, other: Draft, source: Random) -> Child | None:
        """A child with a part of another parent."""
        structure = DraftStructure(parent, self.names)
        work = work_of(structure)
        for _ in range(_TRIES):
            made = crossover(structure, other, source)
            if made is None:
                return None
            draft = self._accepted(made, parent, work, [parent, other])
            if draft is not None:
                return Child(draft, (CROSSOVER,))
        return None

    def _moved(
        self, draft: Draft, source: Random, weights: Mapping[str, float], first: Draft
    ) -> tuple[Draft, str] | None:
        structure = DraftStructure(draft, self.names)
        work = work_of(structure)
        context = MoveContext(structure, source, _mean(self.busy, _shares(work)) if self.busy else _shares(work))
        for move in _in_random_order(source, weights):
            made = move.apply(context)
            accepted = None if made is None else self._accepted(made, draft, work, [draft, first])
            if accepted is not None:
                return accepted, move.name
        return None

    def _accepted(self, made: Draft, parent: Draft, work: Mapping[str, float], proven: list[Draft]) -> Draft | None:
        """The draft repaired, if it is another one than the parent and does not do far more work than that does."""
        draft = repair(made, self.names, proven)
        if draft == parent:
            return None
        after = sum(work_of(DraftStructure(draft, self.names)).values())
        return draft if after <= _MOST_WORK * sum(work.values()) else None


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
