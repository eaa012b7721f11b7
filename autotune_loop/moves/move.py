"""What a move is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.draft.structure import DraftStructure, Site

T = TypeVar("T")


@dataclass(frozen=True)
class MoveContext:
    """What a move may use.

    Attributes:
        structure: of the draft that is changed.
        source: of all chance.
        busy: how much of the pipeline's work each Func does, in all 1: moves prefer Funcs with much.
        region: the Funcs that may be changed; all if it is None.
    """

    structure: DraftStructure
    source: Random
    busy: Mapping[str, float]
    region: Collection[str] | None = None

    @property
    def draft(self) -> Draft:
        """The draft that is changed."""
        return self.structure.draft

    def may_change(self, name: str) -> bool:
        """Whether a Func may be changed."""
        return self.region is None or name in self.region

    def pick(self, items: Sequence[T]) -> T | None:
        """One of them; None where there is none."""
        return self.source.choice(items) if items else None

    def pick_func(self, names: Sequence[str]) -> str | None:
        """A Func that may be changed, the sooner the more of the work it does."""
        names = [name for name in names if self.may_change(name)]
        if not names:
            return None
        weights = [0.2 / len(names) + self.busy.get(name, 0.0) for name in names]
        return self.source.choices(names, weights)[0]

    def scheduled(self) -> list[str]:
        """The Funcs with loops of their own that moves may change."""
        return [
            name
            for name, func in self.draft.funcs.items()
            if self.may_change(name)
            and func.stages
            and not self.structure.is_inlined(name)
            and self.structure.shape(name) is not None
        ]

    def pick_site(self) -> Site | None:
        """A stage with loops of its own."""
        name = self.pick_func(self.scheduled())
        if name is None:
            return None
        return Site(name, self.source.randrange(len(self.draft.funcs[name].stages)))


@dataclass(frozen=True)
class Move:
    """A way of changing a draft.

    Attributes:
        weight: how often it is tried, relative to the others, before anything is known.
        apply: the changed draft, not yet repaired; None where it does not apply.
    """

    name: str
    weight: float
    apply: Callable[[MoveContext], Draft | None]
