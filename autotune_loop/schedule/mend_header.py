"""A schedule header as it is kept and shipped."""

from __future__ import annotations

from autotune_loop.schedule.parse import parse_schedule
from autotune_loop.schedule.print_header import print_header
from targets.errors import GeneratorError
from targets.schedule.header import portable_schedule


def mend_header(text: str, name: str) -> str:
    """The header with `apply_schedule_<name>`, without local paths and without its autoscheduler's faults.

    A header that holds more than an autoscheduler writes, such as one that was edited, is only made portable.
    Mending a second time changes nothing.

    Raises:
        GeneratorError: `text` is not a schedule header, or `name` cannot be a function's.
    """
    try:
        schedule = parse_schedule(text)
    except GeneratorError:
        return portable_schedule(text, name)
    return print_header(schedule, name)
