"""A schedule as nested loops for people, like Halide's print_loop_nest, from the schedule alone.

A schedule does not name everything: loops without directives are missing, and a Func that is computed inside an
update's loops is shown in the last stage that has such a loop.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from halide_autotune.autotune_loop.schedule.calls import call_of, print_call, print_expression
from halide_autotune.autotune_loop.schedule.check import check_schedule
from halide_autotune.autotune_loop.schedule.directives import (
    ComputeAt,
    ComputeWith,
    Directive,
    Fuse,
    Gpu,
    GpuBlocks,
    GpuLanes,
    GpuSingleThread,
    GpuThreads,
    Hexagon,
    HoistStorage,
    OfFunc,
    Parallel,
    PartitionLoop,
    Prefetch,
    Rename,
    Reorder,
    ReorderStorage,
    RFactor,
    Serial,
    Split,
    StoreAt,
    StoreIn,
    Tile,
    Unroll,
    Vectorize,
    variables_of,
)
from halide_autotune.autotune_loop.schedule.model import ByIndex, Schedule
from halide_autotune.autotune_loop.schedule.values import OUTERMOST, Expression, LoopLevel, Number

_INDENT = "  "
# A Func's identifier, the update's number, and the conditions of a specialization.
_Stage = tuple[str, int | None, tuple[Expression, ...]]


@dataclass(frozen=True)
class _Loop:
    variable: str
    kind: str = "for"
    extent: Number | None = None

    def __str__(self) -> str:
        match self.extent:
            case None:
                extent = ""
            case int(number):
                extent = f" in [0, {number - 1}]"
            case unknown:
                extent = f" in [0, {print_expression(unknown)} - 1]"
        return f"{self.kind} {self.variable}{extent}:"


def print_loops(schedule: Schedule) -> str:
    """The loops of every Func that is not inlined, producers first, with its storage.

    Raises:
        GeneratorError: the schedule is inconsistent.
    """
    check_schedule(schedule)
    lines = [f"schedule of {schedule.function_name}"]
    told = schedule.provenance
    if told is not None:
        lines[0] += f" by {told.autoscheduler} for {told.target}"
    return "\n".join(lines + _LoopPrinter(schedule).lines()) + "\n"


class _LoopPrinter:
    def __init__(self, schedule: Schedule) -> None:
        self._loops: dict[_Stage, list[_Loop]] = {}
        self._computed: dict[str, LoopLevel] = {}
        # What is written at a loop besides the Funcs that are computed there: "store f".
        self._notes: dict[LoopLevel, list[str]] = {}
        self._storage: dict[str, str] = {}
        self._fused: dict[_Stage, str] = {}
        for stage in schedule.stages:
            key = (stage.func, stage.update, stage.conditions)
            loops = self._loops.setdefault(key, list(self._loops.get((*key[:2], stage.conditions[:-1]), ())))
            for directive in stage.directives:
                self._note(key, directive)
                loops[:] = _after(loops, directive)
        self._order = _producers_first(schedule)

    def _note(self, stage: _Stage, directive: Directive) -> None:
        func = stage[0]
        match directive:
            case ComputeAt(level):
                self._computed[func] = level
            case StoreAt(level):
                self._notes.setdefault(level, []).append(f"store {func}")
            case HoistStorage(level):
                self._notes.setdefault(level, []).append(f"allocate {func}")
            case Prefetch(source, at, base, offset):
                note = f"prefetch {source.identifier} for {base} + {print_expression(offset)}"
                self._notes.setdefault(LoopLevel(func, at), []).append(note)
            case ComputeWith(other, variable):
                self._fused[stage] = f" with {other} down to {variable}"
            case _ if isinstance(directive, OfFunc):
                self._storage[func] = f"{self._storage.get(func, '')} {_of_storage(directive)}"

    def lines(self) -> list[str]:
        """One paragraph for each Func that is computed at the root."""
        stored = [f"{note} at the root" for note in self._notes.get(LoopLevel(), ())]
        at_root = [func for func in self._order if self._home(func) is None]
        return stored + [line for func in at_root for line in self._produce(func, 0)]

    def _home(self, func: str) -> LoopLevel | None:
        """The loop that a Func is computed in, if that loop is known."""
        level = self._computed.get(func)
        if level is None or level.func is None or level.func == func or self._last_stage_with(level) is None:
            return None
        return level

    def _last_stage_with(self, level: LoopLevel) -> _Stage | None:
        for stage in reversed(self._stages_of(level.func)):
            if level.variable == OUTERMOST or _find(self._loops[stage], level.variable) is not None:
                return stage
        return None

    def _stages_of(self, func: str | None) -> list[_Stage]:
        """The pure definition first; in each stage the specializations, the innermost first, before what holds else."""
        of_func = [stage for stage in self._loops if stage[0] == func]
        first = [conditions[:1] for _, _, conditions in of_func]
        of_func.sort(
            key=lambda stage: (
                -1 if stage[1] is None else stage[1],
                first.index(stage[2][:1]) if stage[2] else len(first),
                -len(stage[2]),
            )
        )
        return of_func

    def _produce(self, func: str, depth: int) -> list[str]:
        level = self._computed.get(func)
        unknown = level is not None and level.func is not None and self._home(func) is None
        where = f" (at {level.func}, {level.variable})" if level is not None and unknown else ""
        lines = [_INDENT * depth + f"produce {func}{self._storage.get(func, '')}{where}:"]
        for stage in self._stages_of(func):
            lines += self._stage(stage, depth + 1)
        return lines

    def _stage(self, stage: _Stage, depth: int) -> list[str]:
        func, update, conditions = stage
        titles = [f"update {update}"] if update is not None else []
        titles += [f"if {print_expression(condition)}" for condition in conditions]
        if stage in self._fused:
            titles.append(self._fused[stage].lstrip())
        lines = [_INDENT * depth + f"{', '.join(titles)}:"] if titles else []
        depth += bool(titles)
        for loop in [_Loop(OUTERMOST), *reversed(self._loops[stage])]:
            if loop.variable != OUTERMOST:
                lines.append(_INDENT * depth + str(loop))
                depth += 1
            lines += self._inside(stage, LoopLevel(func, loop.variable), depth)
        lines.append(_INDENT * depth + f"{func}(...) = ...")
        return lines

    def _inside(self, stage: _Stage, level: LoopLevel, depth: int) -> list[str]:
        if self._last_stage_with(level) != stage:
            return []
        lines = [_INDENT * depth + note for note in self._notes.get(level, ())]
        for func in self._order:
            if self._home(func) == level:
                lines += self._produce(func, depth)
        return lines


def _of_storage(directive: Directive) -> str:
    match directive:
        case StoreIn(memory):
            return f"in {memory.value}"
        case ReorderStorage(variables):
            return f"stored as ({', '.join(variables)})"
        case _:
            return print_call(call_of(directive)).removeprefix(".")


def _producers_first(schedule: Schedule) -> list[str]:
    """The scheduled Funcs: by their index in the pipeline if there is one, else the last named first."""
    scheduled = {stage.func for stage in schedule.stages}
    funcs = [func for func in reversed(schedule.funcs) if func.identifier in scheduled]
    funcs.sort(key=lambda func: func.origin.index if isinstance(func.origin, ByIndex) else -1)
    return [func.identifier for func in funcs]


def _find(loops: Iterable[_Loop], variable: str | None) -> int | None:
    return next((place for place, loop in enumerate(loops) if loop.variable == variable), None)


def _after(loops: list[_Loop], directive: Directive) -> list[_Loop]:
    """A stage's loops, the innermost first, after one more directive."""
    made = _made_by(directive)
    used = [name for name in variables_of(directive) if name not in made and name != OUTERMOST]
    if not isinstance(directive, OfFunc | RFactor):
        loops = loops + [_Loop(name) for name in dict.fromkeys(used) if _find(loops, name) is None]
    match directive:
        case Split(old, outer, inner, factor):
            return _split(loops, old, outer, inner, factor)
        case Tile(previous, outers, inners, factors):
            for old, outer, inner, factor in zip(previous, outers, inners, factors, strict=True):
                loops = _split(loops, old, outer, inner, factor)
            return _reordered(loops, (*inners, *outers))
        case Fuse(inner, outer, fused):
            kept = [loop for loop in loops if loop.variable != outer]
            return [_Loop(fused) if loop.variable == inner else loop for loop in kept]
        case Rename(old, new):
            return [replace(loop, variable=new) if loop.variable == old else loop for loop in loops]
        case Reorder(variables):
            return _reordered(loops, tuple(name for name in variables if name != OUTERMOST))
        case Vectorize(variable):
            return _marked(loops, "vectorized", variable)
        case Unroll(variable):
            return _marked(loops, "unrolled", variable)
        case Serial(variable):
            return _marked(loops, "for", variable)
        case Parallel(variable, size):
            tasks = "" if size is None else f" (tasks of {print_expression(size)})"
            return _marked(loops, f"parallel{tasks}", variable)
        case GpuBlocks(variables):
            return _marked(loops, "gpu_block", *variables)
        case GpuThreads(variables):
            return _marked(loops, "gpu_thread", *variables)
        case GpuLanes(variable):
            return _marked(loops, "gpu_lane", variable)
        case Hexagon(variable):
            return _marked(loops, "hexagon", variable)
        case PartitionLoop(variable, policy):
            return [
                replace(loop, kind=f"{loop.kind} ({policy.value.lower()} partitioned)")
                if loop.variable == variable
                else loop
                for loop in loops
            ]
        case Gpu(block, thread):
            return _marked(_marked(loops, "gpu_block", block), "gpu_thread", thread)
        case GpuSingleThread():
            return [*loops, _Loop("(one)", "gpu_thread")]
        case _:
            return loops


def _made_by(directive: Directive) -> set[str]:
    """The loops that a directive makes, unless it used up one of the same name."""
    match directive:
        case Split(old, outer, inner):
            return {outer, inner} - {old}
        case Tile(previous, outers, inners):
            return {*outers, *inners} - {*previous}
        case Fuse(inner, outer, fused):
            return {fused} - {inner, outer}
        case Rename(old, new):
            return {new} - {old}
        case _:
            return set()


def _split(loops: list[_Loop], old: str, outer: str, inner: str, factor: Number) -> list[_Loop]:
    place = _find(loops, old)
    if place is None:
        return [*loops, _Loop(inner, extent=factor), _Loop(outer)]
    before = loops[place].extent
    extent = -(-before // factor) if isinstance(before, int) and isinstance(factor, int) else None
    return [*loops[:place], _Loop(inner, extent=factor), _Loop(outer, extent=extent), *loops[place + 1 :]]


def _reordered(loops: list[_Loop], order: tuple[str, ...]) -> list[_Loop]:
    """As Halide does it: the named loops swap their own places, the others stay."""
    places = sorted(place for place, loop in enumerate(loops) if loop.variable in order)
    by_name = {loop.variable: loop for loop in loops}
    result = list(loops)
    names = [name for name in dict.fromkeys(order) if name in by_name]
    for place, name in zip(places, names, strict=False):
        result[place] = by_name[name]
    return result


def _marked(loops: list[_Loop], kind: str, *variables: str) -> list[_Loop]:
    return [replace(loop, kind=kind) if loop.variable in variables else loop for loop in loops]
