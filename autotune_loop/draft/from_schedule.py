"""From a schedule as calls to a draft."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from halide_autotune.autotune_loop.draft.cases import read_cases
from halide_autotune.autotune_loop.draft.model import AS_IS, Draft, FuncDraft, LoopKind, StageDraft, Transform
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.partitioning import with_partitioning_read
from halide_autotune.autotune_loop.schedule.check import make_identifier
from halide_autotune.autotune_loop.schedule.directives import (
    AllowRaceConditions,
    Atomic,
    ComputeAt,
    ComputeWith,
    Directive,
    Fuse,
    OfFunc,
    Parallel,
    PartitionLoop,
    Prefetch,
    Rename,
    Reorder,
    RFactor,
    Serial,
    Split,
    StoreAt,
    Tile,
    Unroll,
    Unscheduled,
    Vectorize,
)
from halide_autotune.autotune_loop.schedule.model import (
    Accessor,
    ByIndex,
    ByName,
    Clone,
    Intermediate,
    Origin,
    Parameter,
    Schedule,
    StageSchedule,
    Variable,
    Wrapper,
)
from halide_autotune.autotune_loop.schedule.values import OUTERMOST, LoopLevel, Source, Stage
from halide_autotune.targets.errors import GeneratorError

_KINDS: Mapping[type[Directive], LoopKind | None] = {
    Vectorize: LoopKind.VECTORIZED,
    Unroll: LoopKind.UNROLLED,
    Parallel: LoopKind.PARALLEL,
    Serial: None,
}
_KEPT = (Atomic, AllowRaceConditions, PartitionLoop, Prefetch, ComputeWith)
_KNOWN = (Split, Tile, Fuse, Rename, Reorder, Unscheduled, *_KINDS, *_KEPT)


def draft_of(schedule: Schedule, names: PipelineNames) -> Draft:
    """The schedule as a draft.

    Specializations, what an rfactor makes and a GPU's loops are kept as they are, with the whole Func.

    Raises:
        GeneratorError: it names a Func that the pipeline does not have.
    """
    return _Drafter(schedule, names).draft()


class _Drafter:
    def __init__(self, schedule: Schedule, names: PipelineNames) -> None:
        self._schedule = schedule
        self._names = names
        self._funcs = self._identifiers()
        self._halide_names = {
            variable.identifier: names.halide_name(variable.identifier, schedule, self._funcs)
            for variable in schedule.variables
        }
        self._halide_names[OUTERMOST] = OUTERMOST
        # Of each stage: Halide's names of its loops → the draft's.
        self._loops: dict[tuple[str, int], dict[str, str]] = {}

    def draft(self) -> Draft:
        of_func: dict[str, list[StageSchedule]] = {}
        for stage in self._schedule.stages:
            of_func.setdefault(self._funcs[stage.func], []).append(stage)
        origins = {self._funcs[func.identifier]: func.origin for func in self._schedule.funcs}
        cases = {name: found for name, each in of_func.items() if (found := self._cases(name, each))}
        of_func |= {name: of_func[name][:-1] for name in cases}
        frozen = {name for name, stages in of_func.items() if not all(map(_can_be_drafted, stages))}
        frozen |= {name for name in origins if self._has_other_loops(name, origins)}
        every = [*self._names.shapes, *(name for name in origins if name not in self._names.shapes)]
        stages = {name: self._stages(name, of_func.get(name, []), origins) for name in every if name not in frozen}
        funcs = {}
        for name in every:
            origin = origins.get(name)
            kept = None if isinstance(origin, ByIndex | ByName) else self._renamed_origin(origin)
            if name in frozen:
                funcs[name] = self._frozen(of_func.get(name, []), kept)
            else:
                arguments = self._original(name, 0, origins)
                func = self._func(of_func.get(name, []), stages[name], arguments)
                if func.compute is None and name in self._names.shapes and self._names.shapes[name].is_output:
                    func = replace(func, compute=LoopLevel())
                funcs[name] = replace(func, origin=kept, cases=cases.get(name, ()))
        return Draft(funcs, self._parameters(cases))

    def _cases(self, name: str, stages: Sequence[StageSchedule]) -> tuple[str, ...]:
        """The arguments for whose extents a Func is compiled once more, if its last stage says that and no more."""
        shape = self._names.shapes.get(name)
        if shape is None or not all(map(_can_be_drafted, stages[:-1])):
            return ()
        loops = [variable.identifier for variable in self._names.loops(name, 0)]
        return read_cases(stages[-1], shape, loops, self._schedule.parameters) or ()

    def _parameters(self, cases: Mapping[str, object]) -> tuple[Parameter, ...]:
        """The parameters that more than such cases name."""
        in_cases = {self._names.shapes[name].name for name in cases}
        others = [stage for stage in self._schedule.stages if stage.directives or self._funcs[stage.func] not in cases]
        named = {
            name for stage in others for each in (*stage.directives, *stage.conditions) for name in _named_in(each)
        }
        return tuple(
            each for each in self._schedule.parameters if each.name not in in_cases or each.identifier in named
        )

    def _has_other_loops(self, name: str, origins: Mapping[str, Origin]) -> bool:
        """Whether a Func is what an rfactor makes, or a copy of that or of an extern Func: its loops are not the
        pipeline's."""
        of = name
        while isinstance(origin := origins[of], Wrapper | Clone):
            of = self._funcs[origin.of]
        is_of_extern = of != name and of in self._names.shapes and self._names.shapes[of].is_extern
        return isinstance(origin, Intermediate) or is_of_extern

    def _identifiers(self) -> dict[str, str]:
        """The schedule's identifiers of Funcs → the draft's."""
        found: dict[str, str] = {}
        for func in self._schedule.funcs:
            match func.origin:
                case ByIndex(index):
                    if index >= len(self._names.shape.funcs):
                        raise GeneratorError(f"The pipeline has no Func {index}.")
                    found[func.identifier] = self._names.funcs[self._names.shape.funcs[index].name]
                case ByName(name):
                    if name not in self._names.funcs:
                        raise GeneratorError(f"The pipeline has no Func {name!r}.")
                    found[func.identifier] = self._names.funcs[name]
                case _:
                    taken = {*self._names.shapes, *found.values()}
                    found[func.identifier] = make_identifier(func.identifier, taken)
        return found

    def _renamed_origin(self, origin: Any) -> Any:
        if isinstance(origin, Wrapper | Clone):
            return type(origin)(self._funcs[origin.of], tuple(self._funcs[each] for each in origin.consumers))
        return origin

    # Stages that are drafted

    def _original(self, name: str, index: int, origins: Mapping[str, Any]) -> dict[str, str]:
        """Halide's names of a stage's loops before any scheduling → the draft's, the innermost first."""
        origin = origins.get(name)
        of = self._funcs[origin.of] if isinstance(origin, Wrapper | Clone) else name
        shape = self._names.shapes.get(of)
        if shape is None or index >= (1 if isinstance(origin, Wrapper) else len(shape.stages)):
            return {}
        loops = zip(shape.stages[index].loops, self._names.loops(of, index), strict=True)
        return {loop.name: variable.identifier for loop, variable in loops}

    def _stages(self, name: str, stages: Sequence[StageSchedule], origins: Mapping[str, Any]) -> tuple[StageDraft, ...]:
        drafted = []
        index = 0
        while index == 0 or self._original(name, index, origins):
            original = self._original(name, index, origins)
            directives = [
                directive
                for stage in stages
                if (0 if stage.update is None else stage.update + 1) == index
                for directive in stage.directives
                if not isinstance(directive, OfFunc)
            ]
            drafted.append(self._stage((name, index), original, directives))
            index += 1
        return tuple(drafted)

    def _stage(self, place: tuple[str, int], original: dict[str, str], directives: Sequence[Directive]) -> StageDraft:
        loops = _StageLoops(original)
        for directive in directives:
            loops.apply(directive, self._halide_names)
        self._loops[place] = loops.by_name
        drafted = StageDraft(tuple(loops.transforms), tuple(loops.order), loops.kinds, tuple(loops.kept))
        return with_partitioning_read(drafted)

    def _func(
        self, stages: Sequence[StageSchedule], drafted: tuple[StageDraft, ...], arguments: Mapping[str, str]
    ) -> FuncDraft:
        def argument(variable: str) -> str:
            return arguments.get(str(self._halide_names[variable]), variable)

        func = FuncDraft(None, tuple(map(self._others_renamed, drafted)))
        for directive in (each for stage in stages for each in stage.directives if isinstance(each, OfFunc)):
            match directive:
                case ComputeAt(level):
                    func = replace(func, compute=self._level(level))
                case StoreAt(level):
                    func = replace(func, store=self._level(level))
                case _:
                    kept = _with_names(directive, argument, self._func_name, self._level)
                    func = replace(func, storage=(*func.storage, kept))
        return func

    def _others_renamed(self, stage: StageDraft) -> StageDraft:
        """The stage with the draft's names for what it names of other Funcs."""
        also: list[Directive] = []
        for directive in stage.also:
            match directive:
                case ComputeWith(other, variable, alignments):
                    level = self._level(LoopLevel(other.func, variable))
                    if level.func is not None and level.variable is not None:
                        with_stage = Stage(level.func, other.update)
                        also.append(ComputeWith(with_stage, level.variable, alignments))
                case Prefetch(source):
                    also.append(replace(directive, source=Source(self._func_name(source.identifier))))
                case _:
                    also.append(directive)
        return replace(stage, also=tuple(also))

    def _level(self, level: LoopLevel) -> LoopLevel:
        """A level with the draft's names; root where there is no such loop."""
        if level.func is None or level.variable is None:
            return level
        func, name = self._funcs[level.func], self._halide_names.get(level.variable)
        stages = [loops for (of, _), loops in self._loops.items() if of == func]
        for loops in reversed(stages):
            if name in loops:
                return LoopLevel(func, loops[name])
        return LoopLevel() if stages else LoopLevel(func, self._kept_name(level.variable))

    # Stages that are kept as they are

    def _frozen(self, stages: Sequence[StageSchedule], origin: Any) -> FuncDraft:
        used = {name for stage in stages for directive in stage.directives for name in _names_in(directive)}
        variables = []
        for variable in (each for each in self._schedule.variables if each.identifier in used):
            source = variable.source
            if isinstance(source, Accessor):
                source = replace(source, func=self._funcs[source.func])
            variables.append(Variable(self._kept_name(variable.identifier), variable.is_reduction, source))
        kept = tuple(
            StageSchedule(
                self._funcs[stage.func], stage.update, tuple(map(self._renamed, stage.directives)), stage.conditions
            )
            for stage in stages
        )
        levels = [each.level for stage in kept for each in stage.directives if isinstance(each, ComputeAt)]
        in_order = tuple(sorted(variables, key=lambda each: (each.is_reduction, each.identifier)))
        return FuncDraft(levels[-1] if levels else None, (), origin=origin, frozen=kept, variables=in_order)

    def _kept_name(self, identifier: str) -> str:
        """What a frozen Func's variable is called: nothing that a draft's loop is called, and the same ever after."""
        return identifier if identifier.endswith(AS_IS) else identifier + AS_IS

    def _renamed(self, directive: Directive) -> Directive:
        """A directive that is kept, with the draft's names of Funcs, and names of their own for loops."""
        return _with_names(directive, self._kept_name, self._func_name, self._level)

    def _func_name(self, identifier: str) -> str:
        return self._funcs.get(identifier, identifier)


class _StageLoops:
    """Applies directives to the loops of a stage."""

    def __init__(self, original: Mapping[str, str]) -> None:
        self.by_name = dict(original)
        self.order = list(original.values())
        self.transforms: list[Transform] = []
        self.kinds: dict[str, LoopKind] = {}
        self.kept: list[Directive] = []
        self._made = set(self.order)

    def apply(self, directive: Directive, names: Mapping[str, str | None]) -> None:
        if isinstance(directive, Unscheduled):
            return
        match directive:
            case Split(old, outer, inner):
                self._split(directive, names[old], names[outer], names[inner])
            case Tile(previous, outers, inners, factors, tail):
                for old, outer, inner, factor in zip(previous, outers, inners, factors, strict=True):
                    self._split(Split(old, outer, inner, factor, tail), names[old], names[outer], names[inner])
                self._reorder([self.by_name[str(names[name])] for name in (*inners, *outers)])
            case Fuse(inner, outer, fused):
                first, second = self.by_name.pop(str(names[inner])), self.by_name.pop(str(names[outer]))
                made = self._new(f"{first}_{second}")
                self.by_name[str(names[fused])] = made
                self.transforms.append(Fuse(first, second, made))
                self.order.remove(second)
                self.order[self.order.index(first)] = made
            case Rename(old, new):
                self.by_name[str(names[new])] = self.by_name.pop(str(names[old]))
            case Reorder(variables):
                self._reorder([self.by_name[str(names[name])] for name in variables if name != OUTERMOST])
            case Parallel(variable, size, tail) if size is not None:
                halide_name = str(names[variable])
                self._split(Split(variable, variable, variable, size, tail), halide_name, halide_name, None)
                self.kinds[self.by_name[halide_name]] = LoopKind.PARALLEL
            case Vectorize(variable) | Unroll(variable) | Parallel(variable) | Serial(variable):
                kind = _KINDS[type(directive)]
                loop = self.by_name[str(names[variable])]
                self.kinds.pop(loop, None)
                if kind is not None:
                    self.kinds[loop] = kind
            case ComputeWith(_, _, alignments):
                ours = tuple((self.by_name[str(names[name])], how) for name, how in alignments)
                self.kept.append(replace(directive, alignments=ours))
            case PartitionLoop(variable) if variable != OUTERMOST:
                self.kept.append(replace(directive, variable=self.by_name[str(names[variable])]))
            case Prefetch(_, at, base):
                self.kept.append(
                    replace(directive, at=self.by_name[str(names[at])], base=self.by_name[str(names[base])])
                )
            case _:
                self.kept.append(directive)

    def _split(self, split: Split, old: str | None, outer: str | None, inner: str | None) -> None:
        loop = self.by_name.pop(str(old))
        made = self._new(f"{loop}o"), self._new(f"{loop}i")
        self.by_name[str(outer)] = made[0]
        if inner is not None:
            self.by_name[inner] = made[1]
        self.transforms.append(replace(split, old=loop, outer=made[0], inner=made[1]))
        place = self.order.index(loop)
        self.order[place : place + 1] = [made[1], made[0]]

    def _reorder(self, wanted: Sequence[str]) -> None:
        """As Halide does it: the named loops swap their own places, the others stay."""
        places = sorted(self.order.index(loop) for loop in wanted)
        for place, loop in zip(places, wanted, strict=True):
            self.order[place] = loop

    def _new(self, name: str) -> str:
        made = make_identifier(name, self._made)
        self._made.add(made)
        return made


def _can_be_drafted(stage: StageSchedule) -> bool:
    return not stage.conditions and all(isinstance(each, (*_KNOWN, OfFunc)) for each in stage.directives)


def _named_in(value: object) -> Iterator[str]:
    """The parameters that a directive, or an expression in it, may name."""
    match value:
        case str():
            yield value
        case tuple():
            for each in value:
                yield from _named_in(each)
        case _ if is_dataclass(value):
            for field in fields(value):
                yield from _named_in(getattr(value, field.name))


def _names_in(directive: Directive) -> set[str]:
    found: set[str] = set()

    def add(value: object) -> None:
        if isinstance(value, str):
            found.add(value)
        elif isinstance(value, tuple):
            for each in value:
                add(each)

    for each in fields(directive):
        add(getattr(directive, each.name))
    return found


def _with_names(directive: Directive, of_loop: Any, of_func: Any, of_level: Any) -> Directive:
    def named(value: Any) -> Any:
        match value:
            case LoopLevel():
                return of_level(value)
            case Stage(func, update):
                return Stage(of_func(func), update)
            case Source(identifier):
                return Source(of_func(identifier))
            case str():
                return value if value == OUTERMOST else of_loop(value)
            case tuple():
                return tuple(map(named, value))
            case _:
                return value

    changed = {each.name: named(getattr(directive, each.name)) for each in fields(directive)}
    if isinstance(directive, RFactor):
        changed["intermediate"] = of_func(directive.intermediate)
    return replace(directive, **changed)
