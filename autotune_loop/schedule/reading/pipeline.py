"""From what Halide keeps of a pipeline's schedule to a `Schedule` that makes it again from the plain pipeline.

The form is always the same: specializations, then a stage's splits, fusions and renamings in their order, one reorder,
the types of the loops. `targets/schedule/schedule_reader.cpp` writes what is read here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from halide_autotune.autotune_loop.schedule.check import check_schedule
from halide_autotune.autotune_loop.schedule.directives import (
    AlignBounds,
    AlignExtent,
    AlignStorage,
    Async,
    Bound,
    BoundExtent,
    BoundStorage,
    ComputeAt,
    Directive,
    FoldStorage,
    HoistStorage,
    NoProfiling,
    ReorderStorage,
    RingBuffer,
    StoreAt,
    StoreIn,
    Unscheduled,
)
from halide_autotune.autotune_loop.schedule.model import (
    ByName,
    Clone,
    Intermediate,
    Origin,
    Schedule,
    ScheduledFunc,
    StageSchedule,
    Wrapper,
)
from halide_autotune.autotune_loop.schedule.reading.factoring import factored_stages
from halide_autotune.autotune_loop.schedule.reading.names import ReadNames
from halide_autotune.autotune_loop.schedule.reading.stage import StageReader
from halide_autotune.autotune_loop.schedule.values import ROOT, LoopLevel, MemoryType, Number

# What Halide calls the Funcs of in() and clone_in(), after the name of the Func.
_CLONE = re.compile(r"_clone(?:_in_.*)?\$(\d+)")
# The number in a name that Halide has made.
_NUMBER = re.compile(r"(?<=^[a-z])[0-9]+$|\$[0-9]+$")
_WRAPPER = re.compile(r"_(?:in_.*|wrapper|global_wrapper)\$(\d+)")


@dataclass(frozen=True)
class ReadSchedule:
    """A schedule that was read.

    Attributes:
        differences: what the pipeline's schedule has and `schedule` lacks, a sentence each.
    """

    schedule: Schedule
    differences: tuple[str, ...]


def read_schedule(pipeline: Mapping[str, Any], plain: Mapping[str, Any]) -> ReadSchedule:
    """The schedule that makes of the plain pipeline what is compiled.

    Args:
        pipeline: the object that `schedule_reader.cpp` writes.
        plain: the same of the pipeline without any schedule.

    Raises:
        GeneratorError: a name in it cannot be written in a schedule.
    """
    return _PipelineReader(pipeline, plain).read()


class _PipelineReader:
    def __init__(self, pipeline: Mapping[str, Any], plain: Mapping[str, Any]) -> None:
        self._function_name = pipeline["function_name"]
        self._funcs: Mapping[str, Any] = {func["name"]: func for func in pipeline["funcs"]}
        self._outputs = pipeline["outputs"]
        self._plain = _plain_funcs(self._funcs, plain["funcs"])
        self._names = ReadNames(self._funcs, self._plain)
        self._differences = [
            f"The generator demands {name} = {value} only where no autoscheduler runs."
            for name, value in pipeline["constraints"]
            if [name, value] not in plain["constraints"]
        ]

    def read(self) -> ReadSchedule:
        names = self._names
        self._factored, stages = factored_stages(self._funcs, self._plain, names)
        self._factored_updates = {(stage.func, stage.update) for stage in stages}
        origins = self._origins()
        stages += [stage for func in self._funcs.values() for stage in self._stages(func)]
        used = names.used_funcs | {stage.func for stage in stages}
        funcs = [ScheduledFunc(names.func(name), origin) for name, origin in origins.items()]
        # From the last on: a wrapper needs what it wraps.
        for func in reversed(funcs):
            if func.identifier in used and isinstance(func.origin, Wrapper | Clone):
                used |= {func.origin.of, *func.origin.consumers}
        # Every wrapper counts: it changes the pipeline even if it is scheduled nowhere.
        kept = tuple(f for f in funcs if f.identifier in used)
        schedule = Schedule(
            self._function_name.replace("::", "_"), kept, names.variables, tuple(stages), None, names.parameters
        )
        check_schedule(schedule)
        return ReadSchedule(schedule, tuple(dict.fromkeys((*self._differences, *names.differences))))

    def _origins(self) -> dict[str, Origin]:
        """How each Func is reached, in an order in which each can be."""
        made: dict[str, tuple[int, Origin, tuple[str, ...]]] = {}
        for of, func in self._funcs.items():
            consumers: dict[str, list[str]] = {}
            for consumer, wrapper in func["wrappers"]:
                consumers.setdefault(wrapper, []).extend([consumer] if consumer else [])
            for wrapper, wrapped_in in consumers.items():
                if wrapper in made or wrapper not in self._funcs:
                    continue
                if not set(wrapped_in) <= self._funcs.keys():
                    self._differences.append(f"Func {wrapper} is for a Func that is not in the pipeline.")
                    continue
                suffix = wrapper.removeprefix(of)
                clone, number = _CLONE.fullmatch(suffix), _WRAPPER.fullmatch(suffix)
                kind = Wrapper if clone is None else Clone
                found = clone or number
                origin = kind(self._names.func(of), tuple(map(self._names.func, wrapped_in)))
                made[wrapper] = (int(found[1]) if found else 0, origin, (of, *wrapped_in))
                self._names.use_func(wrapper)
        reached: dict[str, Origin] = {
            name: Intermediate() if name in self._factored else ByName(self._plain.get(name, {"name": name})["name"])
            for name in sorted(self._funcs, key=lambda name: name in self._factored)
            if name not in made
        }
        self._differences += [
            f"Func {name} is not in the plain pipeline, and what made it cannot be told."
            for name, origin in reached.items()
            if isinstance(origin, ByName) and name not in self._plain
        ]
        waiting = sorted(made.items(), key=lambda item: item[1][0])
        while waiting:
            ready = [item for item in waiting if all(name in reached for name in item[1][2])]
            if not ready:
                self._differences.append(f"Func {waiting[0][0]}: its wrappers wrap each other.")
                break
            reached.update((name, origin) for name, (_, origin, _) in ready[:1])
            waiting.remove(ready[0])
        return reached

    def _stages(self, func: Mapping[str, Any]) -> Iterator[StageSchedule]:
        identifier = self._names.func(func["name"])
        for place, stage in enumerate(func["stages"]):
            update = place - 1 if place else None
            is_inlined = update is None and func["compute"] is None and func["name"] not in self._outputs
            reader = StageReader(self._names, func, update, is_inlined=is_inlined)
            of_func = tuple(self._of_func(func)) if update is None else ()
            yield from reader.specializations(stage)
            directives = (*of_func, *reader.directives(stage))
            # An rfactor touches the update that it is of, and Halide refuses unscheduled() after it.
            if directives == (Unscheduled(),) and (identifier, update) in self._factored_updates:
                continue
            if directives:
                yield StageSchedule(identifier, update, directives)

    def _of_func(self, func: Mapping[str, Any]) -> Iterator[Directive]:
        name = func["name"]
        for key, kind in (("compute", ComputeAt), ("store", StoreAt), ("hoist", HoistStorage)):
            level = self._level(func[key], f"{kind.__name__} of {name}")
            if level is not None:
                yield kind(level)
        if func["memory"] != MemoryType.AUTO.value:
            yield StoreIn(MemoryType(func["memory"]))
        if func["is_async"]:
            yield Async()
        if func["ring_buffer"] is not None:
            yield from self._with(RingBuffer, func["ring_buffer"], where=f"ring_buffer of {name}")
        if func["is_not_profiled"]:
            yield NoProfiling()
        for key, what in (("is_memoized", "memoize()"), ("is_traced", "tracing")):
            if func[key]:
                self._differences.append(f"{what} of Func {name} is not part of a schedule as data.")
        for bound in func["bounds"]:
            yield from self._bound(bound, name)
        yield from self._storage(func)

    def _level(self, level: Mapping[str, Any] | None, what: str) -> LoopLevel | None:
        if level is None:
            return None
        if "root" in level:
            return ROOT
        if level["stage"] >= 0:
            self._differences.append(f"{what} is for stage {level['stage']} of {level['func']} alone.")
        if level["func"] not in self._funcs:
            self._differences.append(f"{what} is at Func {level['func']}, which is not in the pipeline.")
            return None
        self._names.use_func(level["func"])
        variable = self._names.variable(level["variable"], is_reduction=level["is_reduction"])
        return LoopLevel(self._names.func(level["func"]), variable)

    def _bound(self, bound: Mapping[str, Any], func: str) -> Iterable[Directive]:
        variable, where = self._names.variable(bound["name"]), f"the bounds of {func}"
        if bound["modulus"] is not None:
            if bound["remainder"] is None:
                return self._with(AlignExtent, variable, bound["modulus"], where=where)
            return self._with(AlignBounds, variable, bound["modulus"], bound["remainder"], where=where)
        if bound["minimum"] is None:
            return self._with(BoundExtent, variable, bound["extent"], where=where)
        return self._with(Bound, variable, bound["minimum"], bound["extent"], where=where)

    def _storage(self, func: Mapping[str, Any]) -> Iterator[Directive]:
        where = f"the storage of {func['name']}"
        order = [dim["name"] for dim in func["storage"]]
        if order != func["args"] and len(order) > 1:
            yield ReorderStorage(tuple(map(self._names.variable, order)))
        for dim in func["storage"]:
            for key, kind in (("alignment", AlignStorage), ("bound", BoundStorage), ("fold", FoldStorage)):
                if dim[key] is not None:
                    more = [dim["fold_forward"]] if key == "fold" else []
                    yield from self._with(kind, self._names.variable(dim["name"]), dim[key], *more, where=where)

    def _with(self, kind: Any, *values: Any, where: str) -> Iterator[Directive]:
        """The directive, unless one of its numbers cannot be told."""
        told: list[str | bool | Number] = []
        for value in values:
            if isinstance(value, str | bool):
                told.append(value)
            elif (number := self._names.number(value, where)) is not None:
                told.append(number)
        if len(told) == len(values):
            yield kind(*told)


def _plain_funcs(funcs: Mapping[str, Any], plain: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The Funcs of the plain pipeline by their names in the scheduled one.

    Halide numbers what has no name or the name of another, and what a schedule makes counts, too: such Funcs may have
    other numbers. Both pipelines have them in one order.
    """

    def groups(names: Iterable[str]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name in names:
            found.setdefault(_NUMBER.sub("", name), []).append(name)
        return found

    by_name = {func["name"]: func for func in plain}
    scheduled = groups(funcs)
    found = {}
    for base, names in groups(by_name).items():
        now = scheduled.get(base, [])
        pairs = zip(names, names, strict=True) if set(names) <= set(now) else zip(now, names, strict=False)
        found.update({name: by_name[plain_name] for name, plain_name in pairs})
    return found
