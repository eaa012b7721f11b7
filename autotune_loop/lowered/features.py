"""What a lowered schedule does, as numbers that any pipeline has and that do not depend on how its loops are nested.

After the context relation features of AutoTVM (Chen et al., Learning to Optimize Tensor Programs, 2018, section 3.1 and
appendix A). What is fetched from beyond caches of several sizes has the place of its curves of touched memory against
reuse: both say at which size of a cache how much is found again.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

from halide_autotune.autotune_loop.lowered.traffic import TouchingLoop, extent_of, touching
from halide_autotune.targets.lowering.loop_nest import Access, Allocation, Computation, Loop, LoopNest

OPERATIONS = (
    *(f"{type_}_{kind}" for type_ in ("int", "float") for kind in ("add", "multiply", "divide", "compare", "select")),
    *(f"{type_}_{kind}" for type_ in ("int", "float") for kind in ("cast", "shuffle", "intrinsic", "call", "reduce")),
    *("address", "broadcast"),
)
ACCESSES = tuple(f"{kind} {what}" for what in ("loads", "stores") for kind in ("dense", "single", "strided", "gather"))
# From a part of an L1 cache to a large L3 cache.
_CACHES_BYTES = tuple(2**power for power in (12, 14, 15, 16, 18, 20, 21, 22, 24, 26))
# A stride that is served by as many loads of whole vectors.
_SMALL_STRIDE = 4
# The largest block that a C library keeps when it is freed (glibc's limit, and the runner's: build/runner/memory.c). A
# larger one has fresh pages each time, whose first touch takes longer than most that is done with them.
_LARGEST_KEPT_BYTES = 32 * 2**20
# For the rough cost: what an L1 and an L2 cache deliver while an operation is done.
_L1, _L1_BYTES_PER_OPERATION, _L2, _L2_BYTES_PER_OPERATION = 2**15, 16, 2**20, 4
# What each number is: the logarithm to base 2 of one more than that, since what doubles is one step.
NEST_FEATURE_NAMES = (
    *OPERATIONS,
    *ACCESSES,
    *("predicated accesses", "operations", "operations outside tasks", "operations in tasks"),
    *("operations on the critical path", "parallel loops run", "tasks", "fewest operations of a task", "idle share"),
    *("iterations", "iterations that wait", "loops run", "branches", "operations of an innermost iteration"),
    *("heap allocations", "heap bytes", "heap bytes from fresh pages", "largest stack bytes"),
    *("operations in the code", "bodies in the code", "largest body in the code"),
    *(f"bytes from beyond {each} bytes" for each in _CACHES_BYTES),
    "rough cost",
)
NestFeatures = tuple[float, ...]


@dataclass
class _Sums:
    """What adds up while a nest is walked.

    Attributes:
        innermost: iterations of innermost loops, and the operations in them.
        idle: operations in tasks, times the logarithm of how much longer cores wait than they work.
    """

    cores: int
    vector_bytes: int
    of: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    innermost: tuple[float, float] = (0.0, 0.0)
    idle: float = 0.0

    def add(self, name: str, number: float) -> None:
        self.of[name] += number

    def raise_to(self, name: str, number: float) -> None:
        self.of[name] = max(self.of[name], number)


def features_of_nest(nest: LoopNest, cores: int) -> NestFeatures:
    """The features of a lowered schedule; `NEST_FEATURE_NAMES` says what they are.

    Args:
        cores: that parallel loops run on.
    """
    sums, root = _Sums(cores, nest.vector_bytes), touching(nest.root)
    _add_loop(root, 1.0, sums, in_task=False)
    fetched = {size: root.fetched_bytes(size) for size in _CACHES_BYTES}
    of = sums.of
    of["operations on the critical path"] += of["operations outside tasks"]
    of["operations of an innermost iteration"] = sums.innermost[1] / max(1.0, sums.innermost[0])
    of["idle share"] = 2 ** (sums.idle / max(1.0, of["operations in tasks"])) - 1
    of.update({f"bytes from beyond {size} bytes": each for size, each in fetched.items()})
    of["rough cost"] = (
        of["operations on the critical path"]
        + fetched[_L1] / _L1_BYTES_PER_OPERATION
        + fetched[_L2] / _L2_BYTES_PER_OPERATION
    )
    return tuple(math.log2(1.0 + of[name]) for name in NEST_FEATURE_NAMES)


def _add_loop(at: TouchingLoop, times: float, sums: _Sums, *, in_task: bool) -> float:
    """Add what a loop does that runs so many times; returns the operations of one run."""
    steps = extent_of(at.loop)
    begins_task = at.loop.kind == "parallel" and not in_task
    is_inside = in_task or begins_task
    own = _add_body(at, times * steps, sums)
    operations = own + sum(_add_loop(each, times * steps, sums, in_task=is_inside) for each in at.inside)
    if at.loop.kind not in ("root", "branch"):
        sums.add("iterations", times * steps)
        sums.add("iterations that wait", times * steps * _waits(at.loop))
        sums.add("loops run", times)
        if all(each.loop.kind == "branch" for each in at.inside):
            sums.innermost = (sums.innermost[0] + times * steps, sums.innermost[1] + times * steps * operations)
    if at.loop.kind == "parallel":  # also inside of another one: its tasks take as much to begin
        sums.add("parallel loops run", times)
        sums.add("tasks", times * steps)
    if begins_task:
        _add_tasks(times, steps, operations, sums)
    if not is_inside:
        sums.add("operations outside tasks", times * steps * own)
    return steps * operations


def _waits(loop: Loop) -> bool:
    """Whether each iteration goes on with what the one before has written, and so waits for it."""
    if loop.kind != "serial":
        return False
    accesses = [access for each in loop.computations for access in each.accesses]
    in_place = [access for access in accesses if access.strides and access.strides[-1] == 0]
    written, read = ({each.buffer for each in in_place if each.is_store is wanted} for wanted in (True, False))
    return not written.isdisjoint(read)


def _add_tasks(times: float, steps: float, operations: float, sums: _Sums) -> None:
    """Add a parallel loop, whose iterations are tasks of so many operations: the cores take them in rounds."""
    rounds = math.ceil(steps / sums.cores)
    sums.add("operations in tasks", times * steps * operations)
    sums.add("operations on the critical path", times * rounds * operations)
    sums.idle += times * steps * operations * math.log2(rounds * sums.cores / max(1.0, steps))
    fewest = sums.of["fewest operations of a task"]
    sums.of["fewest operations of a task"] = min(fewest, operations) if fewest else operations


def _add_body(at: TouchingLoop, times: float, sums: _Sums) -> float:
    """Add what a loop's own body does that runs so many times; returns the operations of one run."""
    body = sum(_add_computation(each, times, sums) for each in at.loop.computations)
    for allocation in at.loop.allocations:
        _add_allocation(allocation, times, sums)
    sums.add("operations", times * body)
    sums.add("operations in the code", body)
    sums.add("bodies in the code", len(at.loop.computations))
    sums.add("branches", times * at.loop.branches)
    return body


def _add_computation(computation: Computation, times: float, sums: _Sums) -> float:
    operations = sum(computation.operations.values())
    for kind, count in computation.operations.items():
        sums.add(kind, times * count)
    for access in computation.accesses:
        instructions = access.count * access_instructions(access, sums.vector_bytes)
        operations += instructions
        sums.add(access_kind(access), times * instructions)
        sums.add("predicated accesses", times * instructions * access.is_predicated)
    sums.raise_to("largest body in the code", operations)
    return operations


def _add_allocation(allocation: Allocation, times: float, sums: _Sums) -> None:
    if allocation.memory == "heap":
        sums.add("heap allocations", times)
        size_bytes = allocation.bytes or 0.0
        sums.add("heap bytes", size_bytes)
        sums.add("heap bytes from fresh pages", times * size_bytes if size_bytes > _LARGEST_KEPT_BYTES else 0.0)
    else:
        sums.raise_to("largest stack bytes", allocation.bytes or 0.0)


def access_kind(access: Access) -> str:
    """Which of `ACCESSES` it is."""
    what = "stores" if access.is_store else "loads"
    if access.lane_stride is None:
        return f"gather {what}"
    if access.lane_stride == 0 or access.lanes == 1:
        return f"single {what}"
    return f"dense {what}" if abs(access.lane_stride) == 1 else f"strided {what}"


def access_instructions(access: Access, vector_bytes: int) -> float:
    """How many accesses of a vector's width, or of one element, an access takes."""
    if access.lane_stride is None or abs(access.lane_stride) > _SMALL_STRIDE:
        return float(access.lanes)
    if access.lane_stride == 0 or access.lanes == 1:
        return 1.0
    return float(math.ceil(abs(access.lane_stride) * access.lanes * access.element_bytes / vector_bytes))
