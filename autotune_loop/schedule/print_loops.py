"""A schedule as nested loops for people, like Halide's print_loop_nest, from the schedule alone.

A schedule does not name everything: loops without directives are missing, and a Func that is computed inside an
update's loops is shown in the last stage that has such a loop.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from autotune_loop.schedule.check import check_schedule
from autotune_loop.schedule.directives import (
    OUTERMOST,
    ComputeAt,
    Directive,
    Fuse,
    Gpu,
    GpuBlocks,
    GpuSingleThread,
    GpuThreads,
    LoopLevel,
    Parallel,
    Reorder,
    ReorderStorage,
    RFactor,
    Split,
    StoreAt,
    StoreIn,
    Tile,
    Unroll,
    Vectorize,
    variables_of,
)
from autotune_loop.schedule.model import ByIndex, Schedule

_INDENT = "  "
# A Func's identifier and the update's number.
_Stage = tuple[str, int | None]


@dataclass(frozen=True)
class _Loop:
    variable: str
    kind: str = "for"
    extent: int | None = None

    def __str__(self) -> str:
        extent = f" in [0, {self.extent - 1}]" if self.extent is not None else ""
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
        self._stored: dict[str, LoopLevel] = {}
        self._memory: dict[str, str] = {}
        self._storage: dict[str, str] = {}
        for stage in schedule.stages:
            loops = self._loops.setdefault((stage.func, stage.update), [])
            for directive in stage.directives:
                self._note(stage.func, directive)
                loops[:] = _after(loops, directive)
        self._order = _producers_first(schedule)

    def _note(self, func: str, directive: Directive) -> None:
        match directive:
            case ComputeAt(level):
                self._computed[func] = level
            case StoreAt(level):
                self._stored[func] = level
            case StoreIn(memory):
                self._memory[func] = f" in {memory.value}"
            case ReorderStorage(variables):
                self._storage[func] = f" stored as ({', '.join(variables)})"

    def lines(self) -> list[str]:
        """One paragraph for each Func that is computed at the root."""
        at_root = [func for func in self._order if self._home(func) is None]
        return [line for func in at_root for line in self._produce(func, 0)]

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
        return sorted((s for s in self._loops if s[0] == func), key=lambda s: -1 if s[1] is None else s[1])

    def _produce(self, func: str, depth: int) -> list[str]:
        level = self._computed.get(func)
        unknown = level is not None and level.func is not None and self._home(func) is None
        where = f" (at {level.func}, {level.variable})" if level is not None and unknown else ""
        title = f"produce {func}{self._memory.get(func, '')}{self._storage.get(func, '')}{where}:"
        lines = [_INDENT * depth + title]
        for stage in self._stages_of(func):
            lines += self._stage(stage, depth + 1)
        return lines

    def _stage(self, stage: _Stage, depth: int) -> list[str]:
        func, update = stage
        lines = [_INDENT * depth + f"update {update}:"] if update is not None else []
        depth += update is not None
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
        lines = [_INDENT * depth + f"store {func}" for func in self._order if self._stored.get(func) == level]
        for func in self._order:
            if self._home(func) == level:
                lines += self._produce(func, depth)
        return lines


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
    if not isinstance(directive, ReorderStorage | RFactor):
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
        case Reorder(variables):
            return _reordered(loops, tuple(name for name in variables if name != OUTERMOST))
        case Vectorize(variable):
            return _marked(loops, "vectorized", variable)
        case Unroll(variable):
            return _marked(loops, "unrolled", variable)
        case Parallel(variable, task_size):
            return _marked(loops, "parallel" if task_size is None else f"parallel (tasks of {task_size})", variable)
        case GpuBlocks(variables):
            return _marked(loops, "gpu_block", *variables)
        case GpuThreads(variables):
            return _marked(loops, "gpu_thread", *variables)
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
        case _:
            return set()


def _split(loops: list[_Loop], old: str, outer: str, inner: str, factor: int) -> list[_Loop]:
    place = _find(loops, old)
    if place is None:
        return [*loops, _Loop(inner, extent=factor), _Loop(outer)]
    before = loops[place].extent
    extent = None if before is None else -(-before // factor)
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
