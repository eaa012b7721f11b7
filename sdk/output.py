"""Printing for people (rich) and for machines (JSON), on standard output."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH_WITHOUT_TERMINAL = 160


def print_json(value: object) -> None:
    """Print one JSON document."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def make_console() -> Console:
    """Return a console on standard output; into a pipe it is wide, so that lines stay whole for grep."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL)
