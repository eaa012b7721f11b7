"""What shows a run, and the choice of what does."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Protocol

from autotune_loop.events import Event, Notice
from autotune_loop.run.result import TuneResult
from targets.errors import UsageError

# Shown when the user has asked the run to end.
STOPPING = Notice("stopping; press Ctrl-C again to stop at once")
# Command lines for a shell, by what they are for.
FollowUp = Mapping[str, str]
RESUME_IT = "resume it"


class Display(Protocol):
    """Shows a run as it happens, then its result."""

    def listen(self, event: Event) -> None:
        """Show one event; called from several threads."""

    def close(self) -> None:
        """Give the terminal back, so that other output prints cleanly; may be called again."""

    def finish(self, result: TuneResult, follow_up: FollowUp) -> None:
        """Show the result; called once, after `close`."""


def choose_display(*, as_json: bool, quiet: bool, plain: bool) -> Display:
    """Return the display for one run: JSON lines, the result alone, plain lines, or the live view.

    Raises:
        UsageError: two options exclude each other.
    """
    if plain and (as_json or quiet):
        other = "--json" if as_json else "--quiet"
        raise UsageError(f"--plain and {other} exclude each other.", next_step="Leave one of them out.")
    if as_json:
        from sdk.display.json_display import JsonDisplay

        return JsonDisplay(result_only=quiet)
    if not (plain or quiet) and sys.stdout.isatty():
        from sdk.display.live_display import LiveDisplay
        from sdk.output import make_console

        console = make_console()
        if not console.is_dumb_terminal:
            return LiveDisplay(console)
    from sdk.display.plain_display import PlainDisplay

    return PlainDisplay(quiet=quiet)
