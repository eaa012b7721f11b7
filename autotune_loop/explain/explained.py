"""What is told of schedules side by side: plain values, as `explanation.json` keeps them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from halide_autotune.devices.timing.func_counts import FuncCounts

_SMALLEST_SHARE = 0.01


@dataclass(frozen=True)
class ExplainedFunc:
    """One Func in one schedule; it is not inlined.

    Attributes:
        time_s: of a call; None without times.
        threads: that were active while it was computed, on average; None without times.
        counts: None where they are missing.
        needed_points: how many would be computed if none were twice; None if that is not known.
        operations: arithmetic of a call, what is inlined into it included; None if that is not known.
    """

    name: str
    is_output: bool = False
    time_s: float | None = None
    threads: float | None = None
    counts: FuncCounts | None = None
    needed_points: int | None = None
    operations: float | None = None

    @property
    def loaded_bytes(self) -> int:
        """What is loaded while it is computed; 0 without counts."""
        return 0 if self.counts is None else self.counts.loaded.bytes

    @property
    def times_computed(self) -> float | None:
        """How often each of its points is computed, on average."""
        if self.counts is None or not self.needed_points:
            return None
        return self.counts.points / self.needed_points


@dataclass(frozen=True)
class ExplainedSchedule:
    """One schedule on one device.

    Attributes:
        label: as it is named to people.
        call_s: of a call under Halide's profiler, which makes it longer; None without times.
        funcs: the slowest first; without times the one that loads most.
        argument_bytes: of all inputs and outputs; None without counts.
        missing: what is not known of it, and why: sentences.
    """

    label: str
    call_s: float | None = None
    funcs: tuple[ExplainedFunc, ...] = ()
    argument_bytes: int | None = None
    missing: tuple[str, ...] = ()

    @cached_property
    def by_name(self) -> Mapping[str, ExplainedFunc]:
        """The Funcs by Halide's names."""
        return {func.name: func for func in self.funcs}

    @property
    def shown_funcs(self) -> tuple[ExplainedFunc, ...]:
        """The pipeline's own, and what Halide's runtime does if it takes a part of the call that matters."""
        least_s = _SMALLEST_SHARE * (self.call_s or math.inf)
        return tuple(func for func in self.funcs if func.counts is not None or (func.time_s or 0.0) >= least_s)

    @property
    def loaded_bytes(self) -> int:
        """By all loads of a call."""
        return sum(func.loaded_bytes for func in self.funcs)

    @property
    def stored_bytes(self) -> int:
        """By all stores of a call."""
        return sum(func.counts.stored.bytes for func in self.funcs if func.counts is not None)

    @property
    def operations(self) -> float | None:
        """Arithmetic of a call; None if that is not known of a Func."""
        known = [func.operations for func in self.funcs if func.counts is not None]
        return None if not known or None in known else sum(one for one in known if one is not None)

    @property
    def busy_cores(self) -> float | None:
        """How many cores compute, on average over a call; None without times."""
        if not self.call_s or not any(func.threads for func in self.funcs):
            return None
        return sum((func.time_s or 0.0) * (func.threads or 0.0) for func in self.funcs) / self.call_s

    def least_traffic_bytes(self, cache_bytes: int | None) -> int | None:
        """What at least goes between memory and the caches in a call.

        Inputs and outputs do once; what is stored at the root and does not fit the last cache is written and read.
        """
        if self.argument_bytes is None:
            return None
        stored = [func.counts for func in self.funcs if func.counts is not None and not func.is_output]
        at_root = [counts for counts in stored if not counts.within and counts.points]
        sizes_bytes = [counts.stored.bytes * counts.realized_points // counts.points for counts in at_root]
        return self.argument_bytes + 2 * sum(size for size in sizes_bytes if cache_bytes and size > cache_bytes)


@dataclass(frozen=True)
class MachineLimits:
    """What a device was seen to do at most, on all its cores at once.

    Attributes:
        bytes_per_s: read and written, of arrays that fit no cache.
        operations_per_s: of 32-bit floats; a multiplication with an addition counts as two.
    """

    bytes_per_s: float
    operations_per_s: float


@dataclass(frozen=True)
class Explanation:
    """Schedules of one generator on one device.

    Attributes:
        clock: what the times were measured with.
        cores: that a parallel loop may use.
        schedules: what is explained comes last; before it, at least one that it is compared with.
        limits: None where they could not be measured.
        cache_bytes: of the last cache before memory; None if unknown.
        changes: what differs in the last schedule from the one before it, in words; the largest difference first.
        limit: what limits the last schedule now, in words.
    """

    device: str
    clock: str
    cores: int
    schedules: tuple[ExplainedSchedule, ...]
    limits: MachineLimits | None = None
    cache_bytes: int | None = None
    changes: tuple[str, ...] = ()
    limit: str = ""

    @property
    def explained(self) -> ExplainedSchedule:
        """The schedule that is explained."""
        return self.schedules[-1]

    @property
    def compared_with(self) -> ExplainedSchedule:
        """The schedule that the changes are told against."""
        return self.schedules[-2]

    def to_dict(self) -> dict[str, Any]:
        """For programs; each key is an attribute."""
        return asdict(self)
