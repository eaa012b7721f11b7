"""Printing for people (rich) and for machines (JSON), on standard output."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
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


@contextlib.contextmanager
def silent_stderr() -> Iterator[None]:
    """Send standard error nowhere, for a library that writes notes to it whatever it is told."""
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextlib.contextmanager
def show_progress(text: str, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Show what is going on, on standard error: a spinner on a terminal, else a line a step; yields the setter."""
    if quiet:
        yield lambda step: None
        return
    if not sys.stderr.isatty():
        sys.stderr.write(text + "\n")
        yield lambda step: print(step, file=sys.stderr)
        return
    from rich.console import Console

    with Console(stderr=True, highlight=False).status(text) as status:
        yield lambda step: status.update(step)
