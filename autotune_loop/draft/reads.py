"""Who reads whom in a draft: wrappers and clones stand in the place of what they replace."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from halide_autotune.autotune_loop.draft.model import Draft, LoopKind
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.schedule.model import Clone, Variable, Wrapper
from halide_autotune.targets.pipeline.shape import STEP, FuncShape, LoopShape, ReadDimension, ReadShape, StageShape


@dataclass(frozen=True)
class Site:
    """A stage that reads a Func."""

    func: str
    stage: int


@dataclass(frozen=True)
class DraftReads:
    """What a draft's Funcs compute and read, derived from the pipeline's shape; nothing here changes the draft."""

    draft: Draft
    names: PipelineNames

    def shape(self, name: str) -> FuncShape | None:
        """What a Func computes; None for an rfactor's intermediate."""
        return self._shapes.get(name)

    def loops(self, site: Site) -> tuple[Variable, ...]:
        """The loops of a stage before any scheduling, the innermost first: those of what a copy stands for."""
        origin = self.draft.funcs[site.func].origin
        return self.names.loops(origin.of if isinstance(origin, Wrapper | Clone) else site.func, site.stage)

    @cached_property
    def _shapes(self) -> Mapping[str, FuncShape]:
        if not self.draft.replacements:
            return self.names.shapes
        found = {**self.names.shapes}
        for name, func in self.draft.funcs.items():
            if isinstance(func.origin, Wrapper | Clone) and func.origin.of in found:
                of = found[func.origin.of]
                found[name] = replace(of, is_output=False)
                if isinstance(func.origin, Wrapper):
                    loops = tuple(LoopShape(arg, "pure", n) for arg, n in zip(of.args, of.extents, strict=True))
                    dimensions = tuple(ReadDimension({arg: STEP}, 1) for arg in of.args)
                    reads = (ReadShape(of.name, False, 1, dimensions),)
                    found[name] = replace(found[name], stages=(StageShape(loops, reads, 1, False, False, False),))
        return found

    @cached_property
    def reads(self) -> Mapping[Site, Mapping[str, ReadShape]]:
        """Stage → the Funcs that it reads, wrappers and clones in the place of what they replace."""
        if not self.draft.replacements:
            return {Site(*place): called for place, called in self.names.reads.items()}
        return {
            Site(name, index): {self._called(func, name): read for func, read in self.names.read_by(stage).items()}
            for name, shape in self._shapes.items()
            for index, stage in enumerate(shape.stages)
        }

    def _called(self, func: str, by: str) -> str:
        """What `by` calls in the place of a Func."""
        replaced = self.draft.replacements.get(func, ())
        everybody = [name for name, consumers in replaced if not consumers]
        for name, consumers in replaced:
            if by in consumers:
                return name
        return everybody[0] if everybody and by != everybody[0] else func

    @cached_property
    def readers(self) -> Mapping[str, list[tuple[Site, ReadShape]]]:
        """Func → the stages that read it directly, and how."""
        found: dict[str, list[tuple[Site, ReadShape]]] = {}
        for site, called in self.reads.items():
            for name, read in called.items():
                found.setdefault(name, []).append((site, read))
        return found

    @cached_property
    def users(self) -> Mapping[str, tuple[Site, ...]]:
        """Func → the stages that compute with it, through whatever is inlined between."""
        found: dict[str, tuple[Site, ...]] = {}

        def through(name: str) -> tuple[Site, ...]:
            if name not in found:
                found[name] = ()
                sites: dict[Site, None] = {}
                for site, _ in self.readers.get(name, ()):
                    inner = through(site.func) if self.is_inlined(site.func) else (site,)
                    sites.update(dict.fromkeys(inner))
                found[name] = tuple(sites)
            return found[name]

        for name in self.draft.funcs:
            through(name)
        return found

    def with_neighbours(self, names: Collection[str]) -> frozenset[str]:
        """Funcs, what they compute with and what computes with them, through whatever is inlined between."""
        users = {site.func for name in names for site in self.users.get(name, ())}
        used = {name for name, sites in self.users.items() if any(site.func in names for site in sites)}
        return frozenset({*names, *users, *used})

    def depends(self, name: str, on: str) -> bool:
        """Whether a Func needs another one, directly or through others."""
        return on in self._needed_funcs(name)

    def _needed_funcs(self, name: str) -> frozenset[str]:
        if name not in self._needs:
            self._needs[name] = frozenset()
            called = {each for site, reads in self.reads.items() if site.func == name for each in reads}
            self._needs[name] = frozenset(called).union(*(self._needed_funcs(each) for each in called))
        return self._needs[name]

    @cached_property
    def _needs(self) -> dict[str, frozenset[str]]:
        return {}

    def is_scatter(self, site: Site) -> bool:
        """Whether data say where an update adds."""
        shape = self.shape(site.func)
        if shape is None or not site.stage or not shape.stages[site.stage].is_associative:
            return False
        loops = {loop.name for loop in shape.stages[site.stage].loops}
        return any(arg not in loops and extent != 1 for arg, extent in zip(shape.args, shape.extents, strict=True))

    def may_have_vectors(self, name: str) -> bool:
        """Whether the target computes a Func, with what is inlined into it, rightly in vectors."""
        shape = self.names.shape
        if not shape.has_wrong_vectors:
            return True
        return not (self._is_wrong_in_vectors(name) or (self._has_floats(name) and not shape.has_float_vectors))

    @property
    def has_wrong_vectors(self) -> bool:
        """Whether a Func has vectors that it may not have."""
        return any(
            LoopKind.VECTORIZED in stage.kinds.values() and not self.may_have_vectors(name)
            for name, func in self.draft.funcs.items()
            for stage in func.stages
        )

    def _has_floats(self, name: str) -> bool:
        computed = (self._shapes[each] for each in self._computed_with(name) if each in self._shapes)
        return any(stage.has_floats for shape in computed for stage in shape.stages)

    def _is_wrong_in_vectors(self, name: str) -> bool:
        for each in self._computed_with(name):
            if each not in self._shapes:
                return any(stage.is_wrong_if_inlined for shape in self._shapes.values() for stage in shape.stages)
            inlined = [self._shapes[one] for one in self.inlined_into(each) if one in self._shapes]
            has_narrow = any(shape.is_narrow for shape in inlined)
            stages = self._shapes[each].stages
            if any(stage.is_wrong_in_vectors or (has_narrow and stage.is_wrong_if_inlined) for stage in stages):
                return True
        return False

    def least_lanes(self, name: str) -> int:
        """How many elements vectors of a Func must have, with what is inlined into it."""
        if self.names.shape.least_lanes == 1:
            return 1
        computed = (self._shapes[each] for each in self._computed_with(name) if each in self._shapes)
        return max((1, *(stage.least_lanes for shape in computed for stage in shape.stages)))

    def _computed_with(self, name: str) -> list[str]:
        """A Func and all that are inlined into it, at any depth."""
        found, todo = dict.fromkeys([name]), [name]
        while todo:
            new = [each for each in self.inlined_into(todo.pop()) if each not in found]
            found.update(dict.fromkeys(new))
            todo += new
        return [*found]

    def inlined_into(self, name: str) -> list[str]:
        """The Funcs that its stages read and that are computed there."""
        stages = self._shapes[name].stages if name in self._shapes else ()
        called = {each for index in range(len(stages)) for each in self.reads.get(Site(name, index), {})}
        return sorted(filter(self.is_inlined, called))

    def is_inlined(self, name: str) -> bool:
        """Whether a Func has no loops of its own."""
        func = self.draft.funcs[name]
        return func.is_inlined and len(func.stages) == 1
