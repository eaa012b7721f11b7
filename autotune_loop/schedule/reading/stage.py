"""The directives that make a stage's loops again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from halide_autotune.autotune_loop.schedule.directives import (
    AllowRaceConditions,
    Atomic,
    ComputeWith,
    Directive,
    Fuse,
    GpuBlocks,
    GpuLanes,
    GpuSingleThread,
    GpuThreads,
    Hexagon,
    Parallel,
    PartitionLoop,
    Prefetch,
    Rename,
    Reorder,
    SpecializeFail,
    Split,
    Unroll,
    Unscheduled,
    Vectorize,
)
from halide_autotune.autotune_loop.schedule.model import StageSchedule
from halide_autotune.autotune_loop.schedule.reading.names import ReadNames
from halide_autotune.autotune_loop.schedule.values import (
    OUTERMOST,
    DeviceAPI,
    Expression,
    LoopAlignStrategy,
    Partition,
    PrefetchBoundStrategy,
    Source,
    Stage,
    TailStrategy,
    Text,
)

_SERIAL = ("serial", "extern")
_ON_HOST: Mapping[str, type[Parallel | Vectorize | Unroll]] = {
    "parallel": Parallel,
    "vectorize": Vectorize,
    "unroll": Unroll,
}
_ON_GPU: Mapping[str, type[GpuBlocks | GpuThreads]] = {"gpu_blocks": GpuBlocks, "gpu_threads": GpuThreads}


class StageReader:
    """Reads one stage of a Func, and its specializations.

    Halide calls the loops that come from `x` `x.xo`, `x.xi` and so on: the whole name tells where a loop comes from,
    its last part is the variable.
    """

    def __init__(self, names: ReadNames, func: Mapping[str, Any], update: int | None, *, is_inlined: bool) -> None:
        self._names = names
        self._is_inlined = is_inlined
        self._func = func["name"]
        self._update = update

    def specializations(
        self, stage: Mapping[str, Any], outside: tuple[Expression, ...] = ()
    ) -> Iterator[StageSchedule]:
        """The stages under a condition, each followed by those that are specialized further."""
        for one in stage["specializations"]:
            if one["failure"]:
                continue
            condition = self._names.number(one["condition"], f"specialize of {self._func}")
            if not isinstance(condition, Expression):
                continue
            conditions = (*outside, condition)
            directives = tuple(self.directives(one["stage"]))
            inner = tuple(self.specializations(one["stage"], conditions))
            # A specialization starts as a copy of what its stage is then: as plain as possible.
            if inner:
                yield StageSchedule(self._names.func(self._func), self._update, (), conditions)
                yield from inner
            if directives or not inner:
                yield StageSchedule(self._names.func(self._func), self._update, directives, conditions)

    def directives(self, stage: Mapping[str, Any]) -> Iterator[Directive]:
        """What makes the stage's loops, in the order in which it is applied."""
        found = list(self._loops(stage))
        failures = [one["failure"] for one in stage["specializations"] if one["failure"]]
        found += [SpecializeFail(Text(message)) for message in failures]
        if not found and self._update is not None and stage["is_touched"] and not stage["specializations"]:
            found.append(Unscheduled())
        yield from found

    def _loops(self, stage: Mapping[str, Any]) -> Iterator[Directive]:
        reductions = [reduction["name"] for reduction in stage["reductions"]]
        kinds = {**dict.fromkeys(stage["pure"], False), **dict.fromkeys(reductions, True)}
        loops = [*reductions, *stage["pure"], OUTERMOST]
        device = next((DeviceAPI(d["device"]) for d in stage["dims"] if d["type"] == "gpu_threads"), None)
        on_outermost = [split for split in stage["splits"] if split["old"].startswith(OUTERMOST)]
        for split in stage["splits"]:
            if split not in on_outermost:
                yield from self._split(split, loops, kinds)
        if on_outermost:
            yield from self._on_outermost(on_outermost, stage, loops, device)
        dims = [dim for dim in stage["dims"] if not dim["name"].startswith(f"{OUTERMOST}.")]
        order = [dim["name"] for dim in dims]
        if sorted(order) != sorted(loops) and not on_outermost:
            self._differ(f"its loops are {', '.join(order)}, which no splits of {', '.join(loops)} give")
            return
        kinds.update((dim["name"], dim["is_reduction"]) for dim in dims)
        # Even if it changes nothing, so that the order of loops is always told.
        if len(order) > 2 and not on_outermost and not (self._is_inlined and order == loops):
            yield Reorder(tuple(self._variable(name, kinds) for name in order[:-1]))
        if stage["is_atomic"]:
            yield Atomic(stage["overrides_test"])
        if stage["allows_races"]:
            yield AllowRaceConditions()
        yield from self._types(dims, kinds)
        yield from self._prefetches(stage, kinds)
        if stage["with"] is not None and self._names.knows_func(stage["with"]["func"]):
            yield self._with(stage)

    def _variable(self, name: str, kinds: Mapping[str, bool]) -> str:
        return self._names.variable(name.rpartition(".")[2], is_reduction=kinds.get(name, False))

    def _split(self, split: Mapping[str, Any], loops: list[str], kinds: dict[str, bool]) -> Iterator[Directive]:
        old, outer, inner = split["old"], split["outer"], split["inner"]
        match split["kind"]:
            case "split":
                is_reduction = kinds.get(old, split["exact"])
                kinds.update({outer: is_reduction, inner: is_reduction})
                factor = self._names.number(split["factor"], f"a split of {self._func}")
                self._replace(loops, old, inner, outer)
                # A renaming afterwards has changed the split itself.
                parts = [name.removeprefix(f"{old}.").split(".") for name in (outer, inner)]
                first = [f"{old}.{each[0]}" for each in parts]
                kinds.update(dict.fromkeys(first, is_reduction))
                if factor is not None:
                    names = [self._variable(name, kinds) for name in (old, *first)]
                    yield Split(names[0], names[1], names[2], factor, TailStrategy(split["tail"]))
                for each in parts:
                    for before, after in itertools.pairwise(each):
                        yield Rename(
                            self._names.variable(before, is_reduction=is_reduction),
                            self._names.variable(after, is_reduction=is_reduction),
                        )
            case "rename":
                kinds[outer] = kinds.get(old, split["exact"])
                self._replace(loops, old, outer)
                yield Rename(self._variable(old, kinds), self._variable(outer, kinds))
            case "fuse":
                # The fused loop is called `old`, as if it were split into the two.
                kinds[old] = kinds.get(inner, False) or kinds.get(outer, False)
                self._replace(loops, inner, old)
                self._replace(loops, outer)
                yield Fuse(*(self._variable(name, kinds) for name in (inner, outer, old)))

    def _replace(self, loops: list[str], old: str, *new: str) -> None:
        if old in loops:
            place = loops.index(old)
            loops[place : place + 1] = new

    def _on_outermost(
        self, splits: list[Any], stage: Mapping[str, Any], loops: list[str], device: DeviceAPI | None
    ) -> Iterator[Directive]:
        """`gpu_single_thread()` splits the loop around all others twice."""
        kinds = [dim["type"] for dim in stage["dims"] if dim["name"].startswith(f"{OUTERMOST}.")]
        if len(splits) == 2 and kinds[:2] == ["gpu_threads", "gpu_blocks"] and device is not None:
            order = [dim["name"] for dim in stage["dims"] if not dim["name"].startswith(OUTERMOST)]
            if order != loops[:-1]:
                reductions = {dim["name"]: dim["is_reduction"] for dim in stage["dims"]}
                yield Reorder(tuple(self._variable(name, reductions) for name in order))
            yield GpuSingleThread(device)
        else:
            self._differ("the loop around all others is split")

    def _types(self, dims: list[Any], kinds: Mapping[str, bool]) -> Iterator[Directive]:
        for kind, directive in _ON_GPU.items():
            of_kind = [dim for dim in dims if dim["type"] == kind]
            for device in dict.fromkeys(dim["device"] for dim in of_kind):
                names = tuple(self._variable(dim["name"], kinds) for dim in of_kind if dim["device"] == device)
                yield directive(names, DeviceAPI(device))
        for dim in dims:
            yield from self._type(dim, kinds)

    def _type(self, dim: Mapping[str, Any], kinds: Mapping[str, bool]) -> Iterator[Directive]:
        name, kind, device = dim["name"], dim["type"], dim["device"]
        if kind in _ON_HOST:
            yield _ON_HOST[kind](self._variable(name, kinds))
        elif kind == "gpu_lanes":
            yield GpuLanes(self._variable(name, kinds), DeviceAPI(device))
        # What is split off a loop of a GPU keeps its device, which means nothing for loops of other types.
        if kind in (*_SERIAL, *_ON_HOST) and device == DeviceAPI.HEXAGON.value:
            yield Hexagon(self._variable(name, kinds))
        if dim["partition"] != Partition.AUTO.value:
            yield PartitionLoop(self._variable(name, kinds), Partition(dim["partition"]))

    def _prefetches(self, stage: Mapping[str, Any], kinds: Mapping[str, bool]) -> Iterator[Directive]:
        of_name = {name.rpartition(".")[2]: is_reduction for name, is_reduction in kinds.items()}
        for one in stage["prefetches"]:
            name = one["source"]
            if not one["is_input"] and not self._names.knows_func(name):
                self._differ(f"a prefetch of {name}, which is not in the pipeline")
                continue
            if not one["is_input"]:
                self._names.use_func(name)
            source = self._names.parameter(name, "buffer") if one["is_input"] else self._names.func(name)
            offset = self._names.number(one["offset"], f"a prefetch of {self._func}")
            at, base = (
                self._names.variable(one[key], is_reduction=of_name.get(one[key], False)) for key in ("at", "base")
            )
            if offset is not None:
                yield Prefetch(Source(source), at, base, offset, PrefetchBoundStrategy(one["strategy"]))

    def _with(self, stage: Mapping[str, Any]) -> ComputeWith:
        level = stage["with"]
        self._names.use_func(level["func"])
        other = Stage(self._names.func(level["func"]), level["stage"] - 1 if level["stage"] > 0 else None)
        of_name = {dim["name"].rpartition(".")[2]: dim["is_reduction"] for dim in stage["dims"]}
        alignments = tuple(
            (self._names.variable(name, is_reduction=of_name.get(name, False)), LoopAlignStrategy(align))
            for name, align in stage["alignments"]
            if align != LoopAlignStrategy.AUTO.value
        )
        variable = self._names.variable(level["variable"], is_reduction=level["is_reduction"])
        return ComputeWith(other, variable, alignments)

    def _differ(self, what: str) -> None:
        stage = self._func if self._update is None else f"{self._func}, update {self._update}"
        self._names.differences.append(f"Func {stage}: {what}.")
