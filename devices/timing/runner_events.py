"""What the programs that we send to devices say: a JSON object a line."""

from __future__ import annotations

import json
from typing import Any


def read_events(output: str) -> list[dict[str, Any]]:
    """The JSON objects among the lines; whatever else a kernel or a driver printed is passed over."""
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
