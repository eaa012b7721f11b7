"""What a program of ours prints where it ran: lines of JSON among whatever else was printed, none of it trusted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from halide_autotune.targets.values.checks import Unfit
from halide_autotune.targets.values.records import record

_T = TypeVar("_T")


def read_events(output: str) -> list[dict[str, Any]]:
    """Return the JSON objects among the lines of a program's output; whatever else was printed is skipped."""
    events = []
    for line in output.splitlines():
        if line.startswith("{"):
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(event, dict):
                events.append(event)
    return events


def read_event(name: str, kind: type[_T], events: Sequence[Mapping[str, object]]) -> _T | None:
    """Return the first event of that name as a dataclass; None where there is none, or it is not one.

    Args:
        kind: declares the bounds of each field; keys that it does not have are left out.
    """
    event = next((event for event in events if event.get("event") == name), None)
    try:
        return None if event is None else record(kind, passes_unknown=True)(event)
    except Unfit:
        return None
