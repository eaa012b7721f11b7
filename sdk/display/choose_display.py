"""Which display fits: what was asked for, else what standard output can show."""

from __future__ import annotations

import sys

from sdk.display.display import Display
from sdk.display.json_display import JsonDisplay
from targets.errors import UsageError


def choose_display(*, as_json: bool, quiet: bool, plain: bool) -> Display:
    """The display for one run: JSON lines, the result alone, plain lines, or the live view.

    Raises:
        UsageError: two of them were asked for that exclude each other.
    """
    if plain and (as_json or quiet):
        raise UsageError(f"--plain and {'--json' if as_json else '--quiet'} exclude each other: give one of them.")
    if as_json:
        return JsonDisplay(result_only=quiet)
    if quiet:
        from sdk.display.quiet_display import QuietDisplay

        return QuietDisplay()
    if not plain and sys.stdout.isatty():
        from sdk.display.live_display import LiveDisplay
        from sdk.output import make_console

        console = make_console()
        if not console.is_dumb_terminal:
            return LiveDisplay(console)
    from sdk.display.plain_display import PlainDisplay

    return PlainDisplay()
