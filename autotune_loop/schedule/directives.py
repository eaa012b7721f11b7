"""The directives for one stage: the scheduling calls of Halide 21 that Halide's autoschedulers and experts write.

Variables and Funcs are named by their identifier in the schedule. The names of the methods are Halide's. Calls that say
the same in other words are missing: `vectorize(x, 8)` is a split and `vectorize`, `never_partition(x, y)` two of
`partition`. `memoize` is missing, too: it is not a matter of loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields

from halide_autotune.autotune_loop.schedule.values import (
    DeviceAPI,
    Expression,
    LoopAlignStrategy,
    LoopLevel,
    MemoryType,
    Number,
    Partition,
    PrefetchBoundStrategy,
    Source,
    Stage,
    TailStrategy,
    Text,
)


@dataclass(frozen=True)
class ComputeAt:
    """`compute_root()` or `compute_at(func, variable)`."""

    level: LoopLevel


@dataclass(frozen=True)
class StoreAt:
    """`store_root()` or `store_at(func, variable)`: stored further out than computed, a sliding window."""

    level: LoopLevel


@dataclass(frozen=True)
class HoistStorage:
    """`hoist_storage_root()` or `hoist_storage(func, variable)`: allocated there, once for all uses."""

    level: LoopLevel


@dataclass(frozen=True)
class StoreIn:
    """`store_in(memory)`."""

    memory: MemoryType


@dataclass(frozen=True)
class Async:
    """`async()`: computed in a thread beside its consumer."""


@dataclass(frozen=True)
class RingBuffer:
    """`ring_buffer(extent)`: so many copies of the storage, used in turn."""

    extent: Number


@dataclass(frozen=True)
class NoProfiling:
    """`no_profiling()`."""


@dataclass(frozen=True)
class Bound:
    """`bound(variable, minimum, extent)`."""

    variable: str
    minimum: Number
    extent: Number


@dataclass(frozen=True)
class BoundExtent:
    """`bound_extent(variable, extent)`."""

    variable: str
    extent: Number


@dataclass(frozen=True)
class AlignBounds:
    """`align_bounds(variable, modulus, remainder)`."""

    variable: str
    modulus: Number
    remainder: Number


@dataclass(frozen=True)
class AlignExtent:
    """`align_extent(variable, modulus)`."""

    variable: str
    modulus: Number


@dataclass(frozen=True)
class AlignStorage:
    """`align_storage(variable, alignment)`."""

    variable: str
    alignment: Number


@dataclass(frozen=True)
class BoundStorage:
    """`bound_storage(variable, bound)`."""

    variable: str
    bound: Number


@dataclass(frozen=True)
class FoldStorage:
    """`fold_storage(variable, extent, fold_forward)`."""

    variable: str
    extent: Number
    fold_forward: bool = True


@dataclass(frozen=True)
class ReorderStorage:
    """`reorder_storage(variables)`, the innermost dimension first."""

    variables: tuple[str, ...]


@dataclass(frozen=True)
class Split:
    """`split(old, outer, inner, factor, tail)`."""

    old: str
    outer: str
    inner: str
    factor: Number
    tail: TailStrategy = TailStrategy.AUTO


@dataclass(frozen=True)
class Tile:
    """`tile(previous, outers, inners, factors, tail)`: a split of each variable, inners inside all outers."""

    previous: tuple[str, ...]
    outers: tuple[str, ...]
    inners: tuple[str, ...]
    factors: tuple[Number, ...]
    tail: TailStrategy = TailStrategy.AUTO


@dataclass(frozen=True)
class Fuse:
    """`fuse(inner, outer, fused)`."""

    inner: str
    outer: str
    fused: str


@dataclass(frozen=True)
class Rename:
    """`rename(old, new)`."""

    old: str
    new: str


@dataclass(frozen=True)
class Reorder:
    """`reorder(variables)`, the innermost first."""

    variables: tuple[str, ...]


@dataclass(frozen=True)
class Vectorize:
    """`vectorize(variable)`."""

    variable: str


@dataclass(frozen=True)
class Unroll:
    """`unroll(variable)`."""

    variable: str


@dataclass(frozen=True)
class Parallel:
    """`parallel(variable)`, or `parallel(variable, task_size, tail)`."""

    variable: str
    task_size: Number | None = None
    tail: TailStrategy = TailStrategy.AUTO


@dataclass(frozen=True)
class Serial:
    """`serial(variable)`."""

    variable: str


@dataclass(frozen=True)
class PartitionLoop:
    """`partition(variable, policy)`."""

    variable: str
    policy: Partition


@dataclass(frozen=True)
class GpuBlocks:
    """`gpu_blocks` of one to three variables."""

    variables: tuple[str, ...]
    device: DeviceAPI = DeviceAPI.DEFAULT_GPU


@dataclass(frozen=True)
class GpuThreads:
    """`gpu_threads` of one to three variables."""

    variables: tuple[str, ...]
    device: DeviceAPI = DeviceAPI.DEFAULT_GPU


@dataclass(frozen=True)
class GpuLanes:
    """`gpu_lanes(variable)`: the lanes of a warp."""

    variable: str
    device: DeviceAPI = DeviceAPI.DEFAULT_GPU


@dataclass(frozen=True)
class Gpu:
    """`gpu(block, thread)`."""

    block: str
    thread: str


@dataclass(frozen=True)
class GpuSingleThread:
    """`gpu_single_thread()`."""

    device: DeviceAPI = DeviceAPI.DEFAULT_GPU


@dataclass(frozen=True)
class Hexagon:
    """`hexagon(variable)`: offloaded to the DSP from this loop on."""

    variable: str


@dataclass(frozen=True)
class Prefetch:
    """`prefetch(source, at, base, offset, strategy)`: in loop `at`, what iteration `base + offset` will read."""

    source: Source
    at: str
    base: str
    offset: Number
    strategy: PrefetchBoundStrategy = PrefetchBoundStrategy.GUARD_WITH_IF


@dataclass(frozen=True)
class ComputeWith:
    """`compute_with(stage, variable, alignments)`: in one loop nest with another Func's stage, down to a variable.

    Attributes:
        variable: of the other stage.
        alignments: (variable, which ends meet) for loops where this matters.
    """

    stage: Stage
    variable: str
    alignments: tuple[tuple[str, LoopAlignStrategy], ...] = ()


@dataclass(frozen=True)
class Atomic:
    """`atomic()`; Halide does not ask for a proof of associativity where `override_associativity_test` is true."""

    override_associativity_test: bool = False


@dataclass(frozen=True)
class AllowRaceConditions:
    """`allow_race_conditions()`."""


@dataclass(frozen=True)
class SpecializeFail:
    """`specialize_fail(message)`: the kernel fails where no specialization applies."""

    message: Text


@dataclass(frozen=True)
class Unscheduled:
    """`unscheduled()`: an update that is not scheduled on purpose."""


@dataclass(frozen=True)
class RFactor:
    """`intermediate = rfactor({{reduction variable, variable}, …})`; the intermediate is a Func of its own."""

    preserved: tuple[tuple[str, str], ...]
    intermediate: str


OfFunc = (
    ComputeAt
    | StoreAt
    | HoistStorage
    | StoreIn
    | Async
    | RingBuffer
    | NoProfiling
    | Bound
    | BoundExtent
    | AlignBounds
    | AlignExtent
    | AlignStorage
    | BoundStorage
    | FoldStorage
    | ReorderStorage
)
OfUpdate = Unscheduled | RFactor
OfStage = (
    Split
    | Tile
    | Fuse
    | Rename
    | Reorder
    | Vectorize
    | Unroll
    | Parallel
    | Serial
    | PartitionLoop
    | GpuBlocks
    | GpuThreads
    | GpuLanes
    | Gpu
    | GpuSingleThread
    | Hexagon
    | Prefetch
    | ComputeWith
    | Atomic
    | AllowRaceConditions
    | SpecializeFail
)
Directive = OfFunc | OfStage | OfUpdate


def variables_of(directive: Directive) -> tuple[str, ...]:
    """The loops of its own stage that a directive names, without those of other Funcs."""
    match directive:
        case ComputeAt() | StoreAt() | HoistStorage() | ComputeWith():
            return ()
        case RFactor(preserved):
            return tuple(_texts(preserved))
        case _:
            return tuple(_texts(getattr(directive, field.name) for field in fields(directive)))


def expressions_of(directive: Directive) -> Iterator[Expression]:
    """The expressions among a directive's fields."""
    for field in fields(directive):
        value = getattr(directive, field.name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, Expression):
                yield item


def parameters_of(expression: Expression) -> Iterator[str]:
    """The identifiers of the parameters that an expression is made of."""
    if not expression.operands:
        yield expression.operator
    for operand in expression.operands:
        if isinstance(operand, Expression):
            yield from parameters_of(operand)


def _texts(values: Iterable[object]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, tuple):
            yield from _texts(value)
