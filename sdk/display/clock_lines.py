"""What the times of an output are: said once, above all of them; each number then has the mark of its clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.text import Text

from halide_autotune.devices.device import Clock

_DOUBTFUL = "bold yellow"


def clock_lines(clocks: Iterable[str]) -> Iterator[Text]:
    """A line for each clock of an output, but for real devices' wall time.

    Args:
        clocks: as they are recorded; they may be of a later version, and so unknown.
    """
    several = list(dict.fromkeys(clocks))
    for clock in several:
        if clock != Clock.WALL.value:
            which = f"Times marked {Clock.mark_of(clock).strip()}" if len(several) > 1 else "All times"
            is_device_time = clock == Clock.CYCLES.value
            yield Text(f"{which} are {Clock.words_of(clock)}.", style="" if is_device_time else _DOUBTFUL)
