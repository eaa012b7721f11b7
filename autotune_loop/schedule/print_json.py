"""A schedule as plain values for JSON, and back."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from autotune_loop.schedule.check import check_schedule
from autotune_loop.schedule.directives import Directive
from autotune_loop.schedule.model import Accessor, ByIndex, ByName, Intermediate, Schedule, Wrapper
from targets.errors import GeneratorError
from targets.values.checks import exactly
from targets.values.records import Source, plain, record

_FORMAT = "halide-schedule"
_VERSION = 1
_TAGGED = (*typing.get_args(Directive), ByIndex, ByName, Wrapper, Intermediate, Accessor)


@dataclass(frozen=True)
class _Head:
    format: Annotated[str, exactly(_FORMAT)]
    version: Annotated[int, exactly(_VERSION)]


def to_dict(schedule: Schedule) -> dict[str, Any]:
    """`schedule` as dictionaries, lists, strings and numbers, under a format and a version."""
    return {"format": _FORMAT, "version": _VERSION, **plain(schedule, tagged=_TAGGED)}


def from_dict(data: Mapping[str, Any]) -> Schedule:
    """The schedule that `to_dict` gave.

    Raises:
        GeneratorError: it is of another format or version, a value is missing, unknown or of the wrong type, or the
            schedule does not hold together. The message has the place.
    """
    source = Source(
        "The JSON of a schedule is damaged", GeneratorError, next_step="Write it again from the schedule's header."
    )
    source.check(record(_Head, passes_unknown=True), data)
    fields = {key: value for key, value in data.items() if key not in ("format", "version")}
    schedule = source.check(record(Schedule), fields)
    if to_dict(schedule) != data:
        raise source.refuse("a key is missing.")
    check_schedule(schedule)
    return schedule
