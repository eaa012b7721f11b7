"""Events as JSON lines, for machines; the last line is the result."""

from __future__ import annotations

import json
import sys
import threading

from halide_autotune.autotune_loop.events import Event, event_to_dict
from halide_autotune.autotune_loop.run.result import TuneResult
from halide_autotune.sdk.display.display import RESUME_IT, Display, FollowUp


def result_document(result: TuneResult, follow_up: FollowUp) -> dict[str, object]:
    """The result as machines get it: the last line of `sdk autotune --json`."""
    return {"event": "result", **result.to_dict(), "resume_command": follow_up.get(RESUME_IT)}


class JsonDisplay(Display):
    """Prints a JSON object a line on standard output, each with its kind under 'event'.

    Args:
        result_only: print only the last line.
    """

    def __init__(self, *, result_only: bool) -> None:
        self._result_only = result_only
        self._lock = threading.Lock()

    def listen(self, event: Event) -> None:
        """See `Display.listen`."""
        if not self._result_only:
            self._write(event_to_dict(event))

    def finish(self, result: TuneResult, follow_up: FollowUp) -> None:
        """See `Display.finish`."""
        self._write(result_document(result, follow_up))

    def _write(self, value: dict[str, object]) -> None:
        line = json.dumps(value) + "\n"
        with self._lock:
            sys.stdout.write(line)
            sys.stdout.flush()
