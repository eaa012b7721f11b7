"""What differs in a schedule from another one of the same pipeline, in words."""

from __future__ import annotations

from collections.abc import Iterator

from halide_autotune.autotune_loop.explain.explained import ExplainedFunc, ExplainedSchedule
from halide_autotune.autotune_loop.explain.words import bytes_words, lanes_words, place_words, tasks_words, time_words

_MOST_FUNCS = 8
# Differences of less than this are not told.
_TOLD = 1.15
# A Func that takes less of both schedules is left out.
_SMALLEST_SHARE = 0.01


def changes(before: ExplainedSchedule, after: ExplainedSchedule) -> tuple[str, ...]:
    """A sentence for each Func that is computed in another way; what gained or lost most comes first.

    Where a Func is inlined in one of the two, its time there counts as that of the Funcs that call it.
    """
    names = dict.fromkeys((*(func.name for func in after.funcs), *(func.name for func in before.funcs)))
    told = []
    for name in names:
        one, other = before.by_name.get(name), after.by_name.get(name)
        text = "; ".join(_differences(one, other))
        if text and (weight := _weight(before, after, name)) >= _SMALLEST_SHARE:
            told.append((weight, f"{name}: {text}{_times(one, other)}."))
    return tuple(text for _, text in sorted(told, key=lambda each: -each[0])[:_MOST_FUNCS])


def _weight(before: ExplainedSchedule, after: ExplainedSchedule, name: str) -> float:
    """How much a Func matters: by time, or without times by what is loaded for it; as a share of the larger whole."""
    pair = [schedule.by_name.get(name, ExplainedFunc(name)) for schedule in (before, after)]
    if before.call_s and after.call_s:
        one_s, other_s = (func.time_s or 0.0 for func in pair)
        return max(abs(one_s - other_s), max(one_s, other_s) / 2) / max(before.call_s, after.call_s)
    whole = max(before.loaded_bytes, after.loaded_bytes, 1)
    return max(func.loaded_bytes for func in pair) / whole


def _differences(before: ExplainedFunc | None, after: ExplainedFunc | None) -> Iterator[str]:
    one = None if before is None else before.counts
    other = None if after is None else after.counts
    if one is None and other is None:
        return
    yield from _differs(place_words(one), place_words(other))
    if one is None or other is None:
        if other is not None and after is not None and (after.times_computed or 1) > _TOLD:
            yield f"each point {after.times_computed:.2g} times"
        return
    assert before is not None and after is not None, "they have counts"
    again, again_now = before.times_computed, after.times_computed
    if again and again_now and _is_other(again, again_now):
        yield f"each point {again_now:.2g} times (was {again:.2g})"
    if _is_other(one.stored.values_at_once, other.stored.values_at_once):
        yield from _differs(lanes_words(one.stored), lanes_words(other.stored))
    yield from _differs(tasks_words(one), tasks_words(other))
    if _is_other(one.loaded.bytes, other.loaded.bytes):
        yield f"loads {bytes_words(other.loaded.bytes)} (was {bytes_words(one.loaded.bytes)})"


def _differs(before: str, after: str) -> Iterator[str]:
    if before != after:
        yield f"{after} (was {before.removeprefix('computed ')})"


def _is_other(before: float, after: float) -> bool:
    return max(before, after) > _TOLD * min(before, after)


def _times(before: ExplainedFunc | None, after: ExplainedFunc | None) -> str:
    one_s = None if before is None else before.time_s
    other_s = None if after is None else after.time_s
    if one_s is not None and other_s is not None:
        return f": {time_words(one_s)} to {time_words(other_s)}"
    if other_s is not None:
        return f": {time_words(other_s)}"
    return "" if one_s is None else f": it took {time_words(one_s)}"
