"""Amounts and places of an explanation, in words."""

from __future__ import annotations

from halide_autotune.devices.timing.func_counts import Accesses, FuncCounts

_KILO = 1000.0


def time_words(time_s: float) -> str:
    """'1.23 s', '3.1 ms' or '85 us'."""
    if time_s >= 1:
        return f"{time_s:.3g} s"
    return f"{time_s * 1e3:.3g} ms" if time_s >= 1e-4 else f"{time_s * 1e6:.3g} us"


def bytes_words(count: float) -> str:
    """'18.9 MB', in powers of 1000."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < _KILO or unit == "GB":
            break
        count /= _KILO
    return f"{count:.3g} {unit}" if count < _KILO else f"{count:.0f} {unit}"


def place_words(counts: FuncCounts | None) -> str:
    """Where a Func is computed, as 'computed within out in 1,152 pieces of 138x28'."""
    if counts is None:
        return "inlined"
    extents = "x".join(map(str, counts.extents))
    if counts.realizations <= 1 and not counts.within:
        return "computed whole"
    pieces = "one piece" if counts.realizations == 1 else f"{counts.realizations:,} pieces"
    within = f" within {counts.within}" if counts.within else ""
    return f"computed{within} in {pieces}{f' of {extents}' if extents else ''}"


def lanes_words(accesses: Accesses) -> str:
    """'16 values at a time'; of vectors and single values the average."""
    at_once = accesses.values_at_once
    if at_once <= 1:
        return "one value at a time"
    return f"{at_once:.3g} values at a time"


def tasks_words(counts: FuncCounts) -> str:
    """'in 32 tasks', or empty."""
    if not counts.parallel_loops:
        return "in no parallel tasks"
    each = counts.tasks / counts.parallel_loops
    often = f", {counts.parallel_loops:,} times" if counts.parallel_loops > 1 else ""
    return f"in {each:,.0f} parallel tasks{often}"
