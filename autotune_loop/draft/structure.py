"""What follows from a draft: which loops are around a Func, and how much of it is computed there."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Concatenate, ParamSpec, TypeVar

from halide_autotune.autotune_loop.draft.model import LoopKind
from halide_autotune.autotune_loop.draft.reads import DraftReads
from halide_autotune.autotune_loop.draft.reads import Site as Site
from halide_autotune.autotune_loop.schedule.directives import Bound, BoundExtent, Fuse, Split
from halide_autotune.autotune_loop.schedule.values import ROOT, LoopLevel
from halide_autotune.targets.pipeline.shape import STEP

# What a data-dependent extent counts as.
_UNKNOWN_EXTENT = 64
Extents = tuple[int, ...]
# How far a step of each loop around moves what is needed, in steps of its own; loops of which none does are left out.
Pace = frozenset[tuple[str, Fraction]]
_STILL: Pace = frozenset()
S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")


def kept(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Keep what a method gives for each argument in its object, which must not change.

    Not `functools.cache`, which keeps the object, too, and wants to hash it.
    """
    name = f"{method.__qualname__}()"

    @functools.wraps(method)
    def once(self: S, /, *args: P.args, **no_keywords: P.kwargs) -> R:
        known: dict[object, R] = vars(self).setdefault(name, {})
        if args not in known:
            known[args] = method(self, *args, **no_keywords)
        return known[args]

    return once


@dataclass(frozen=True)
class DraftStructure(DraftReads):
    """Derived from one draft; nothing here changes it."""

    def ordered_loops(self, site: Site) -> tuple[str, ...]:
        """The loops of a stage, before any scheduling, whose iterations have an order; the innermost first."""
        original = self._original(site)
        loops = self._shapes[site.func].stages[site.stage].loops
        return tuple(original[loop.name] for loop in loops if loop.kind == "ordered")

    @kept
    def around(self, site: Site) -> tuple[LoopLevel, ...]:
        """The loops around a stage's innermost statement, from the inside: its own, then those of consumers."""
        func = self.draft.funcs.get(site.func)
        if func is None or site.stage >= len(func.stages):
            return ()
        own = tuple(LoopLevel(site.func, loop) for loop in func.stages[site.stage].order)
        return own + self.outside(site.func)

    def outside(self, name: str) -> tuple[LoopLevel, ...]:
        """The loops around a Func as a whole, from the inside."""
        level = self.draft.funcs[name].compute
        if level is None:
            sites = self.users.get(name, ())
            return self.around(sites[0]) if sites and len(self.draft.funcs[name].stages) > 1 else ()
        if level.func is None or level.func == name:
            return ()
        for site in self.users.get(name, ()):
            chain = self.around(site)
            if level in chain:
                return chain[chain.index(level) :]
        return ()

    @kept
    def around_all_uses(self, name: str) -> tuple[LoopLevel, ...]:
        """The loops around everything that reads a Func, from the inside; the root comes last."""
        sites = self.users.get(name, ())
        if not sites or name not in self._shapes or self._shapes[name].is_output:
            return (ROOT,)
        first, *others = dict.fromkeys(self.around(site) for site in sites)
        return (*(level for level in first if all(level in chain for chain in others)), ROOT)

    def levels(self, name: str) -> tuple[LoopLevel, ...]:
        """The loops where it makes sense to compute a Func, from the inside: none in a vector; the root comes last."""
        levels = self.around_all_uses(name)
        in_vectors = [place for place, level in enumerate(levels) if self.kind(level) is LoopKind.VECTORIZED]
        return levels[in_vectors[-1] + 1 if in_vectors else 0 :]

    def kind(self, level: LoopLevel) -> LoopKind | None:
        """How a loop runs."""
        func = self.draft.funcs.get(level.func or "")
        for stage in () if func is None else func.stages:
            if level.variable is not None and level.variable in stage.kinds:
                return stage.kinds[level.variable]
        return None

    def stores(self, name: str) -> tuple[LoopLevel, ...]:
        """The loops further out than where it is computed, where a Func may be stored: no task is between."""
        compute = self.draft.funcs[name].compute
        levels = self.around_all_uses(name)
        if compute is None or compute not in levels:
            return ()
        found = []
        for inner, level in zip(levels[levels.index(compute) :], levels[levels.index(compute) + 1 :], strict=False):
            if inner == ROOT or self.kind(inner) in (LoopKind.PARALLEL, LoopKind.VECTORIZED):
                break
            found.append(level)
        return tuple(found)

    # Sizes

    @cached_property
    def _regions(self) -> dict[str, Extents]:
        return {}

    @cached_property
    def _unsettled(self) -> set[str]:
        """The Funcs whose region is being worked out: until then, all of them is."""
        return set()

    def region(self, name: str) -> Extents:
        """How much of a Func is computed at once, by argument: an estimate."""
        if name not in self._regions:
            shape = self._shapes[name]
            whole = tuple(extent or _UNKNOWN_EXTENT for extent in shape.extents)
            self._regions[name] = whole
            self._unsettled.add(name)
            self._regions[name] = self.region_at(name, self.draft.funcs[name].compute)
            self._unsettled.remove(name)
        return self._regions[name]

    @kept
    def region_at(self, name: str, level: LoopLevel | None) -> Extents:
        """How much of a Func one iteration of a loop needs, by argument; None is one point of its consumers."""
        whole = tuple(extent or _UNKNOWN_EXTENT for extent in self._shapes[name].extents)
        if level == ROOT or self._shapes[name].is_output:
            return whole
        needed = [1] * len(whole)
        fixed = [0] * len(whole)
        for site, read in self.readers.get(name, ()):
            if site.func not in self.draft.funcs:
                continue
            covered = self._covered(site, level)
            for place, dimension in enumerate(read.dimensions):
                if dimension.slopes is None or dimension.width is None:
                    extent = whole[place]
                elif not dimension.slopes:
                    # At fixed places, which may differ from those of other readers.
                    fixed[place] += dimension.width
                    extent = min(whole[place], fixed[place])
                else:
                    moved = sum(abs(slope) * (covered.get(loop, 1) - 1) for loop, slope in dimension.slopes.items())
                    extent = moved // STEP + dimension.width
                needed[place] = max(needed[place], min(whole[place], extent))
        return tuple(needed)

    def _covered(self, site: Site, level: LoopLevel | None) -> Mapping[str, int]:
        """How far each loop of a stage goes inside a level, by Halide's names of the loops before any scheduling."""
        shape = self._shapes[site.func].stages[site.stage]
        if self.is_inlined(site.func):
            return dict(zip(self._shapes[site.func].args, self.region_at(site.func, level), strict=True))
        func = self.draft.funcs[site.func]
        if not func.stages:
            return {loop.name: loop.extent or _UNKNOWN_EXTENT for loop in shape.loops}
        extents, stage = self.loop_extents(site), func.stages[site.stage]
        if level is None:
            inside: tuple[str, ...] = ()
        elif level.func == site.func and level.variable in stage.order:
            inside = stage.order[: stage.order.index(level.variable)]
        elif func.compute not in (None, ROOT, level):
            # All that an iteration of a loop further out needs of it, not what is computed at once.
            region = dict(zip(self._shapes[site.func].args, self.region_at(site.func, level), strict=True))
            return {loop.name: region.get(loop.name) or loop.extent or _UNKNOWN_EXTENT for loop in shape.loops}
        else:
            inside = stage.order
        covered = {}
        for loop, identifier in self._original(site).items():
            steps = self._steps(site, identifier)
            # From the first to the last, as Halide's regions are boxes: also what is another iteration's between.
            covered[loop] = 1 + sum(max(0, extents[leaf] - 1) * steps[leaf] for leaf in inside if leaf in steps)
        return covered

    @kept
    def _original(self, site: Site) -> Mapping[str, str]:
        """Halide's names of a stage's loops before any scheduling → the draft's."""
        loops = self._shapes[site.func].stages[site.stage].loops
        return {loop.name: each.identifier for loop, each in zip(loops, self.loops(site), strict=False)}

    def loop_extents(self, site: Site) -> Mapping[str, int]:
        """The iterations of every loop of a stage, those that were split or fused included: an estimate."""
        known = self._loop_extents.get(site)
        if known is None:
            known = self._extents_of_loops(site)
            if site.func not in self._unsettled:
                self._loop_extents[site] = known
        return known

    @cached_property
    def _loop_extents(self) -> dict[Site, Mapping[str, int]]:
        return {}

    def _extents_of_loops(self, site: Site) -> Mapping[str, int]:
        shape = self._shapes[site.func]
        region = dict(zip(shape.args, self.region(site.func), strict=True))
        extents = {}
        original = self._original(site)
        for loop in shape.stages[site.stage].loops:
            identifier = original[loop.name]
            extents[identifier] = region.get(loop.name) or loop.extent or _UNKNOWN_EXTENT
        for transform in self.draft.funcs[site.func].stages[site.stage].transforms:
            match transform:
                case Split(old, outer, inner, int(factor)):
                    extents[inner] = factor
                    extents[outer] = max(1, -(-extents[old] // factor))
                case Split(old, outer, inner):
                    extents[inner], extents[outer] = _UNKNOWN_EXTENT, max(1, extents[old] // _UNKNOWN_EXTENT)
                case Fuse(inner, outer, fused):
                    extents[fused] = extents[inner] * extents[outer]
        return extents

    @kept
    def _steps(self, site: Site, original: str) -> Mapping[str, int]:
        """How many iterations of a loop before any scheduling each loop that is made of it takes at a time."""
        steps = {original: 1}
        for transform in self.draft.funcs[site.func].stages[site.stage].transforms:
            match transform:
                case Split(old, outer, inner, factor) if old in steps:
                    steps[inner] = steps[old]
                    steps[outer] = steps[old] * (factor if isinstance(factor, int) else _UNKNOWN_EXTENT)
                case Fuse(inner, outer, fused) if inner in steps or outer in steps:
                    steps[fused] = steps[inner] if inner in steps else steps[outer]
        return steps

    def is_constant(self, site: Site, loop: str) -> bool:
        """Whether a loop's extent is known when it is compiled: only then can it be unrolled or vectorised."""
        func = self.draft.funcs[site.func]
        for transform in reversed(func.stages[site.stage].transforms):
            match transform:
                case Split(_, _, inner, int()) if inner == loop:
                    return True
                case Split(old, outer, _, factor) if outer == loop:
                    return isinstance(factor, int) and self.is_constant(site, old)
                case Fuse(inner, outer, fused) if fused == loop:
                    return self.is_constant(site, inner) and self.is_constant(site, outer)
        original = self._original(site)
        for each in self._shapes[site.func].stages[site.stage].loops:
            if original[each.name] == loop:
                return each.is_constant or (not each.is_reduction and self._is_constant_argument(site.func, each.name))
        return False

    def has_constant_region(self, name: str) -> bool:
        """Whether what is stored of a Func has a size that is known when it is compiled, as a stack needs."""
        return all(self._is_constant_argument(name, argument) for argument in self._shapes[name].args)

    def _is_constant_argument(self, name: str, argument: str) -> bool:
        key = (name, argument)
        if key not in self._constant_arguments:
            self._constant_arguments[key] = False  # for what reads itself
            # What an update writes at an index of its own widens what is computed, whatever is needed.
            updates = self._shapes[name].stages[1:]
            is_pure = all(any(loop.name == argument for loop in stage.loops) for stage in updates)
            self._constant_arguments[key] = self.is_bounded(name, argument) or (
                is_pure
                and not self._shapes[name].is_output
                and self._pace(name, argument, self.draft.funcs[name].compute) is not None
            )
        return self._constant_arguments[key]

    @cached_property
    def _constant_arguments(self) -> dict[tuple[str, str], bool]:
        return {}

    def is_bounded(self, name: str, argument: str) -> bool:
        """Whether the generator or a directive gives the extent of an argument."""
        if argument in self._shapes[name].bounded:
            return True
        loop = self._original(Site(name, 0)).get(argument)
        return any(
            isinstance(directive, Bound | BoundExtent)
            and directive.variable == loop
            and isinstance(directive.extent, int)
            for directive in self.draft.funcs[name].storage
        )

    @kept
    def _pace(self, name: str, argument: str, level: LoopLevel | None) -> Pace | None:
        """How what an iteration of a loop needs of an argument moves with the loops further out; None if that has not
        always the same extent."""
        place = self._shapes[name].args.index(argument)
        paces = set()
        for site, read in self.readers.get(name, ()):
            if site.func not in self.draft.funcs:
                continue
            dimension = read.dimensions[place]
            if dimension.slopes is None or dimension.width is None:
                return None
            # Of rounded indices, as `x / 2` and `(x + 1) / 2`, it depends on where how many are needed.
            rounded = [loop for loop, slope in dimension.slopes.items() if slope % STEP]
            if rounded and (dimension.width != 1 or any(self._covered(site, level).get(r, 1) > 1 for r in rounded)):
                return None
            pace: dict[str, Fraction] = defaultdict(Fraction)
            for loop, slope in dimension.slopes.items():
                of_loop = self._pace_of_loop(site, loop, level)
                if of_loop is None:
                    return None
                for outer, speed in of_loop:
                    pace[outer] += speed * Fraction(slope, STEP)
            paces.add(frozenset(pace.items()))
        # Where one reads all channels and another its own, what both need has an extent of its own in each iteration.
        return None if len(paces) > 1 else next(iter(paces), _STILL)

    def _pace_of_loop(self, site: Site, loop: str, level: LoopLevel | None) -> Pace | None:
        """The same of the iterations of a stage's loop, before any scheduling, that a loop's iteration has."""
        if level is None:
            return _STILL
        func = self.draft.funcs[site.func]
        of_shape = {each.name: each for each in self._shapes[site.func].stages[site.stage].loops}
        is_own = level.func == site.func
        is_reduction = loop in of_shape and of_shape[loop].is_reduction
        if self.is_inlined(site.func) or (not is_own and func.compute not in (None, ROOT, level)):
            # All that an iteration of a loop further out needs of it, not what is computed at once.
            if is_reduction:
                return _STILL if of_shape[loop].is_constant else None
            return self._pace(site.func, loop, level)
        if not func.stages:
            return None
        stage, identifier = func.stages[site.stage], self._original(site)[loop]
        inside = stage.order
        if is_own and level.variable in stage.order:
            inside = stage.order[: stage.order.index(level.variable)]
        leaves = [leaf for leaf in stage.order if identifier in stage.root_of(leaf)]
        if not all(self.is_constant(site, leaf) for leaf in leaves if leaf in inside):
            return None
        if is_reduction and not is_own:
            return _STILL
        moving = frozenset({(f"{site.func}.{loop}", Fraction(1))})
        if is_own:
            return moving if any(self._moves(site, leaf) for leaf in leaves if leaf not in inside) else _STILL
        pace = self._pace(site.func, loop, level)
        return moving if pace is None else pace

    def _moves(self, site: Site, loop: str) -> bool:
        return self.loop_extents(site)[loop] > 1 or not self.is_constant(site, loop)
