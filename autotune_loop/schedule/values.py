"""The values that scheduling calls take, besides variables and whole numbers. The names are Halide's."""

from __future__ import annotations

from dataclasses import dataclass
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


class LoopAlignStrategy(Enum):
    """Which ends of two loops meet if a `compute_with` makes them one."""

    ALIGN_START = "AlignStart"
    ALIGN_END = "AlignEnd"
    NO_ALIGN = "NoAlign"
    AUTO = "Auto"


class Partition(Enum):
    """Whether a loop's first and last iterations become loops of their own, so that the middle needs no checks."""

    AUTO = "Auto"
    NEVER = "Never"
    ALWAYS = "Always"


class PrefetchBoundStrategy(Enum):
    """What a prefetch does beyond the edges of what it fetches from."""

    CLAMP = "Clamp"
    GUARD_WITH_IF = "GuardWithIf"
    NON_FAULTING = "NonFaulting"


class DeviceAPI(Enum):
    """What runs a GPU's loops; the default is what the target says. (Halide's `None` is every other loop's.)"""

    HOST = "Host"
    DEFAULT_GPU = "Default_GPU"
    CUDA = "CUDA"
    OPENCL = "OpenCL"
    METAL = "Metal"
    HEXAGON = "Hexagon"
    HEXAGON_DMA = "HexagonDma"
    D3D12_COMPUTE = "D3D12Compute"
    VULKAN = "Vulkan"
    WEB_GPU = "WebGPU"


@dataclass(frozen=True)
class LoopLevel:
    """A loop of another Func, or the root where both are None."""

    func: str | None = None
    variable: str | None = None


ROOT = LoopLevel()


@dataclass(frozen=True)
class Stage:
    """A Func's identifier and the number of an update; None is the pure definition."""

    func: str
    update: int | None = None

    def __str__(self) -> str:
        return stage_name(self.func, self.update)


def stage_name(func: str, update: int | None) -> str:
    """What C++ and Python call a stage."""
    return func if update is None else f"{func}.update({update})"


@dataclass(frozen=True)
class Source:
    """The identifier of the Func or the input buffer that a prefetch reads."""

    identifier: str


@dataclass(frozen=True)
class Text:
    """Words for people."""

    text: str


@dataclass(frozen=True)
class Expression:
    """A value that is known when the pipeline runs: of the pipeline's parameters and whole numbers.

    Attributes:
        operator: of C++ (`&&`), `min`, `max` or `select`; or, without operands, a parameter's identifier.
    """

    operator: str
    operands: tuple[Expression | int, ...] = ()


# What Halide takes as an Expr that does not depend on loops.
Number = int | Expression
BINARY_OPERATORS = ("+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||")
# Functions, and how many operands they have.
FUNCTIONS = {"!": 1, "min": 2, "max": 2, "select": 3}
