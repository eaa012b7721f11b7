"""How much of what is read and written comes from beyond a cache of some size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from halide_autotune.autotune_loop.lowered.footprint import LINE_BYTES, lines_touched
from halide_autotune.targets.lowering.loop_nest import Access, Loop

# Of a loop whose extent data decides.
_UNKNOWN_EXTENT = 8.0


def extent_of(loop: Loop) -> float:
    """How often a loop's body runs each time."""
    return _UNKNOWN_EXTENT if loop.extent is None else loop.extent


@dataclass(frozen=True)
class Touched:
    """An access with the lines that it touches.

    Attributes:
        lines: over the loops from each depth on: the first over all that are around it, the last of its copies once.
    """

    access: Access
    lines: tuple[float, ...]


@dataclass(frozen=True)
class TouchingLoop:
    """A loop with what its body touches.

    Attributes:
        depth: how many loops are around its body.
        own: of the body; what is in the loops `inside` is theirs.
    """

    loop: Loop
    depth: int
    own: tuple[Touched, ...]
    inside: tuple[TouchingLoop, ...]

    @cached_property
    def everything(self) -> tuple[Touched, ...]:
        """Of its body, and of the loops inside."""
        return (*self.own, *(each for loop in self.inside for each in loop.everything))

    @cached_property
    def body_bytes(self) -> float:
        """What one iteration touches."""
        return self._touched_bytes(self.depth)

    @cached_property
    def all_bytes(self) -> float:
        """What all its iterations touch, each line once."""
        return self._touched_bytes(max(0, self.depth - 1))

    def fetched_bytes(self, cache_bytes: float) -> float:
        """What comes from beyond a cache while the loop runs once.

        Where what one iteration touches fits, the next one finds there what both touch. A branch has no next one: it
        is taken in a share of what is around it.
        """
        if self.body_bytes <= cache_bytes:
            return extent_of(self.loop) * self.body_bytes if self.loop.kind == "branch" else self.all_bytes
        own = LINE_BYTES * sum(each.lines[self.depth] for each in self.own)
        return extent_of(self.loop) * (own + sum(each.fetched_bytes(cache_bytes) for each in self.inside))

    def _touched_bytes(self, depth: int) -> float:
        """Over the loops from a depth on. What accesses of one buffer touch mostly overlaps: the largest counts."""
        lines: dict[str, float] = {}
        for each in self.everything:
            lines[each.access.buffer] = max(lines.get(each.access.buffer, 0.0), each.lines[depth])
        return LINE_BYTES * sum(lines.values())


def touching(loop: Loop, around: Sequence[Loop] = ()) -> TouchingLoop:
    """What a loop touches that has these loops around it; the root of a nest counts as none."""
    loops = [*around, loop] if loop.kind != "root" else []
    own = [Touched(access, _lines(access, loops)) for each in loop.computations for access in each.accesses]
    return TouchingLoop(loop, len(loops), tuple(own), tuple(touching(each, loops) for each in loop.loops))


def _lines(access: Access, loops: Sequence[Loop]) -> tuple[float, ...]:
    strides = (0.0,) * len(loops) if access.strides is None else access.strides
    moves = [*zip(strides, map(extent_of, loops), strict=True)]
    return tuple(lines_touched(access, moves[depth:]) for depth in range(len(loops) + 1))
