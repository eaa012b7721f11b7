"""What was published for an argument set, as rows of the summary and of the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from halide_autotune.autotune_loop.store.published import DEFAULT, Published, ScheduleTime, words_for
from halide_autotune.autotune_loop.store.size_schedules import SizeSchedule
from halide_autotune.sdk.display.quantities import TimeUnit, unit_of

LABEL_WIDTH = 11
_GOOD, _DOUBTFUL = "bold green", "bold yellow"


@dataclass(frozen=True)
class ShownTimes:
    """How the times of one argument set are written: in one unit, with the mark of their clock."""

    unit: TimeUnit
    clock_mark: str

    @classmethod
    def of(
        cls,
        published: Published,
        sizes: Sequence[SizeSchedule],
        clock_mark: str,
        others_ms: Iterable[float] = (),
    ) -> ShownTimes:
        """Return it for all times that stand below each other."""
        times = [published.default, published.own, published.tuned, *(one.tuned for one in sizes)]
        known = [time for time in times if time is not None]
        at_sizes_ms = [time_ms for time in known for time_ms in time.by_size_ms.values()]
        return cls(unit_of([*(time.median_ms for time in known), *at_sizes_ms, *others_ms]), clock_mark)

    def text(self, time_ms: float) -> str:
        """Such as '4.470 ms sim'."""
        return self.unit.text(time_ms, self.clock_mark)


def published_rows(published: Published, shown: ShownTimes, default_description: str) -> Iterator[tuple[str, str, str]]:
    """Label, text and style of each row.

    Args:
        default_description: how the default schedule was made; may be empty.
    """
    default = "not timed" if published.no_default is None else f"not timed, because {published.no_default.reason}"
    if published.default is not None:
        default = "; ".join(filter(None, [_timed(published.default, shown), default_description]))
    yield "default", default, ""
    if published.own is not None:
        yield "own", _timed(published.own, shown), ""
    unconfirmed = "" if published.confirmed else "; unconfirmed"
    if published.stays or published.tuned is None:
        stays = words_for(published.sample)
        yield "tuned", f"{stays} stays: nothing is faster with confidence{unconfirmed}", _DOUBTFUL
    else:
        yield "tuned", f"{_timed(published.tuned, shown)}; {published.sample}", ""
        gain = published.speed_up_text or "unknown: the default was not timed"
        if _within_spread(published):
            gain += ", within the spread of the times"
        yield "speed-up", f"{gain}{unconfirmed}", _GOOD if published.confirmed and published.speed_up else _DOUBTFUL
    yield from _size_rows(published, shown)
    if published.message:
        yield "play-off", published.message, ""


def _size_rows(published: Published, shown: ShownTimes) -> Iterator[tuple[str, str, str]]:
    """The winner's time at each size, and the default's, if there are several."""
    tuned, default = published.tuned, None if published.sample == DEFAULT else published.default
    for size, time_ms in {} if tuned is None else tuned.by_size_ms.items():
        of_default = None if default is None else default.by_size_ms.get(size)
        beside = "" if of_default is None else f", the default {shown.text(of_default)}"
        yield "at a size", f"{shown.text(time_ms)}{beside}; {size}", ""


def size_schedule_rows(schedules: Sequence[SizeSchedule], shown: ShownTimes) -> Iterator[tuple[str, str, str]]:
    """Label, text and style of a row for each size that has a schedule of its own, or might have with more time."""
    for one in schedules:
        if one.tuned is not None and one.speed_up is not None:
            text = f"{shown.text(one.tuned.median_ms)}, {one.speed_up.text}; {one.sample}; {one.size}"
            yield "for a size", text, _GOOD
        elif one.is_unconfirmed:
            yield "for a size", f"{one.message.rstrip('.')}; {one.size}", _DOUBTFUL


def _timed(time: ScheduleTime, shown: ShownTimes) -> str:
    spread = f"spread {100 * time.spread_ms / time.median_ms:.1f} %"
    return f"{shown.text(time.median_ms)}, {time.words}, {spread}"


def _within_spread(published: Published) -> bool:
    """Say whether unconfirmed times differ by less than the sum of their spreads."""
    default, tuned = published.default, published.tuned
    if published.confirmed or default is None or tuned is None:
        return False
    return abs(default.median_ms - tuned.median_ms) < default.spread_ms + tuned.spread_ms
