"""The directives for one stage: every scheduling call that Halide 21's four autoschedulers write.

Variables and Funcs are named by their identifier in the schedule. The names of the methods are Halide's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from enum import Enum

# Halide's name for the loop around all others, which every stage has.
OUTERMOST = "__outermost"


class TailStrategy(Enum):
    """What a split does if its factor does not divide the extent."""

    AUTO = "Auto"
    ROUND_UP = "RoundUp"
    GUARD_WITH_IF = "GuardWithIf"
    PREDICATE = "Predicate"
    PREDICATE_LOADS = "PredicateLoads"
    PREDICATE_STORES = "PredicateStores"
    SHIFT_INWARDS = "ShiftInwards"
    SHIFT_INWARDS_AND_BLEND = "ShiftInwardsAndBlend"
    ROUND_UP_AND_BLEND = "RoundUpAndBlend"


class MemoryType(Enum):
    """Where a Func is stored."""

    AUTO = "Auto"
    HEAP = "Heap"
    STACK = "Stack"
    REGISTER = "Register"
    GPU_SHARED = "GPUShared"
    GPU_TEXTURE = "GPUTexture"
    LOCKED_CACHE = "LockedCache"
    VTCM = "VTCM"
    AMX_TILE = "AMXTile"


@dataclass(frozen=True)
class LoopLevel:
    """A loop of another Func, or the root where both are None."""

    func: str | None = None
    variable: str | None = None


ROOT = LoopLevel()


@dataclass(frozen=True)
class ComputeAt:
    """`compute_root()` or `compute_at(func, variable)`."""

    level: LoopLevel


@dataclass(frozen=True)
class StoreAt:
    """`store_root()` or `store_at(func, variable)`."""

    level: LoopLevel


@dataclass(frozen=True)
class StoreIn:
    """`store_in(memory)`."""

    memory: MemoryType


@dataclass(frozen=True)
class BoundExtent:
    """`bound_extent(variable, extent)`."""

    variable: str
    extent: int


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
    factor: int
    tail: TailStrategy = TailStrategy.AUTO


@dataclass(frozen=True)
class Tile:
    """`tile(previous, outers, inners, factors, tail)`: a split of each variable, inners inside all outers."""

    previous: tuple[str, ...]
    outers: tuple[str, ...]
    inners: tuple[str, ...]
    factors: tuple[int, ...]
    tail: TailStrategy = TailStrategy.AUTO


@dataclass(frozen=True)
class Fuse:
    """`fuse(inner, outer, fused)`."""

    inner: str
    outer: str
    fused: str


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
    task_size: int | None = None
    tail: TailStrategy = TailStrategy.AUTO


@dataclass(frozen=True)
class GpuBlocks:
    """`gpu_blocks` of one to three variables."""

    variables: tuple[str, ...]


@dataclass(frozen=True)
class GpuThreads:
    """`gpu_threads` of one to three variables."""

    variables: tuple[str, ...]


@dataclass(frozen=True)
class Gpu:
    """`gpu(block, thread)`."""

    block: str
    thread: str


@dataclass(frozen=True)
class GpuSingleThread:
    """`gpu_single_thread()`."""


@dataclass(frozen=True)
class Atomic:
    """`atomic()`."""


@dataclass(frozen=True)
class Unscheduled:
    """`unscheduled()`: an update that is not scheduled on purpose."""


@dataclass(frozen=True)
class RFactor:
    """`intermediate = rfactor({{reduction variable, variable}, …})`; the intermediate is a Func of its own."""

    preserved: tuple[tuple[str, str], ...]
    intermediate: str


Directive = (
    ComputeAt
    | StoreAt
    | StoreIn
    | BoundExtent
    | ReorderStorage
    | Split
    | Tile
    | Fuse
    | Reorder
    | Vectorize
    | Unroll
    | Parallel
    | GpuBlocks
    | GpuThreads
    | Gpu
    | GpuSingleThread
    | Atomic
    | Unscheduled
    | RFactor
)

# For a Func only, not for its updates; and the other way round.
OF_FUNC_ONLY = (ComputeAt, StoreAt, StoreIn, BoundExtent, ReorderStorage)
OF_UPDATE_ONLY = (Unscheduled, RFactor)


def variables_of(directive: Directive) -> tuple[str, ...]:
    """The loops of its own stage that a directive names, without those of other Funcs."""
    if isinstance(directive, ComputeAt | StoreAt):
        return ()
    return tuple(_texts(directive.preserved if isinstance(directive, RFactor) else astuple(directive)))


def _texts(values: Iterable[object]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, tuple):
            yield from _texts(value)
