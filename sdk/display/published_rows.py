"""What was published for an argument set, as rows of the summary and of the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from halide_autotune.autotune_loop.store.published import DEFAULT, Published, ScheduleTime, words_for
from halide_autotune.autotune_loop.store.size_schedules import SizeSchedule
from halide_autotune.devices.device import Clock
from halide_autotune.sdk.display.quantities import time_text

LABEL_WIDTH = 11
_GOOD, _DOUBTFUL = "bold green", "bold yellow"


def clock_lines(clock: Clock) -> Iterator[Text]:
    """What all times are, unless it is a real device's wall time: said once, then each number has the clock's mark."""
    if clock is not Clock.WALL:
        yield Text(f"All times are {clock.words}.", style="" if clock.is_device_time else _DOUBTFUL)


def published_rows(published: Published, clock_mark: str, default_description: str) -> Iterator[tuple[str, str, str]]:
    """Label, text and style of each row.

    Args:
        clock_mark: as for `time_text`.
        default_description: how the default schedule was made; may be empty.
    """
    default = "not timed" if published.no_default is None else f"not timed, because {published.no_default.reason}"
    if published.default is not None:
        default = "; ".join(filter(None, [_timed(published.default, clock_mark), default_description]))
    yield "default", default, ""
    if published.own is not None:
        yield "your own", _timed(published.own, clock_mark), ""
    unconfirmed = "" if published.confirmed else "; unconfirmed"
    if published.stays or published.tuned is None:
        stays = words_for(published.sample)
        yield "tuned", f"{stays} stays: nothing is faster with confidence{unconfirmed}", _DOUBTFUL
    else:
        yield "tuned", f"{_timed(published.tuned, clock_mark)}; {published.sample}", ""
        gain = published.speed_up_text or "unknown: the default was not timed"
        if _within_spread(published):
            gain += ", within the spread of the times"
        yield "speed-up", f"{gain}{unconfirmed}", _GOOD if published.confirmed and published.speed_up else _DOUBTFUL
    yield from _size_rows(published, clock_mark)
    if published.message:
        yield "play-off", published.message, ""


def _size_rows(published: Published, clock_mark: str) -> Iterator[tuple[str, str, str]]:
    """The winner's time at each size, and the default's, if there are several."""
    tuned, default = published.tuned, None if published.sample == DEFAULT else published.default
    for size, time_ms in {} if tuned is None else tuned.by_size_ms.items():
        of_default = None if default is None else default.by_size_ms.get(size)
        beside = "" if of_default is None else f", the default {time_text(of_default, clock_mark)}"
        yield "at a size", f"{time_text(time_ms, clock_mark)}{beside}; {size}", ""


def size_schedule_rows(schedules: Sequence[SizeSchedule], clock_mark: str) -> Iterator[tuple[str, str, str]]:
    """Label, text and style of a row for each size that has a schedule of its own, or might have with more time."""
    for one in schedules:
        if one.tuned is not None and one.speed_up is not None:
            text = f"{time_text(one.tuned.median_ms, clock_mark)}, {one.speed_up.text}; {one.sample}; {one.size}"
            yield "for a size", text, _GOOD
        elif one.is_unconfirmed:
            yield "for a size", f"{one.message.rstrip('.')}; {one.size}", _DOUBTFUL


def _timed(time: ScheduleTime, clock_mark: str) -> str:
    spread = f"spread {100 * time.spread_ms / time.median_ms:.1f} %"
    return f"{time_text(time.median_ms, clock_mark)}, {time.words}, {spread}"


def _within_spread(published: Published) -> bool:
    """Say whether unconfirmed times differ by less than the sum of their spreads."""
    default, tuned = published.default, published.tuned
    if published.confirmed or default is None or tuned is None:
        return False
    return abs(default.median_ms - tuned.median_ms) < default.spread_ms + tuned.spread_ms
