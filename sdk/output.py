"""Printing for people (rich) and for machines (JSON), on standard output."""

from __future__ import annotations

import codecs
import contextlib
import io
import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_WIDTH_WITHOUT_TERMINAL = 160


# For terminals and logs that have no such letters.
_IN_ASCII = {"×": "x", "–": "-", "…": "...", "±": "+-", "·": "-", "°": " degrees ", "→": "->"}
_READABLE = "readable"


def open_closed_streams() -> None:
    """Where a shell has closed a standard stream (`>&-`), what is printed there goes nowhere.

    It is opened before anything else is: the next file would have its number, and get what children print.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115  # the lowest free number is its own
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


def accept_every_text() -> None:
    """Print what a terminal's or a log's encoding lacks in other letters: a name in another alphabet fails no run."""
    codecs.register_error(_READABLE, _in_other_letters)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors=_READABLE)


def _in_other_letters(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_IN_ASCII.get(letter, "?") for letter in lacking), error.end


def print_json(value: object) -> None:
    """Print one JSON document."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def shown_path(path: str | Path) -> str:
    """Return a path, relative to the current folder if it is inside it."""
    path, here = Path(path), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def make_console() -> Console:
    """Return a console on standard output that prints texts as they are.

    In a pipe it is wide, so that lines stay whole for grep.
    """
    from rich.console import Console

    width = None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL
    return Console(highlight=False, markup=False, emoji=False, width=width)


def plain_table(*titles: str, numbers: Collection[str] = ()) -> Table:
    """Return a table without lines.

    Args:
        titles: of the columns; the first one has the names, which are never wrapped.
        numbers: the titles of the columns that are aligned to the right.
    """
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        table.add_column(title, overflow="fold", justify="right" if title in numbers else "left")
    table.columns[0].no_wrap, table.columns[0].style = True, "cyan"
    return table


def print_fields(rows: Iterable[tuple[str, str]]) -> None:
    """Print names with their values, a line each."""
    table = plain_table("name", "value")
    table.show_header, table.columns[0].style = False, "bold"
    for row in rows:
        table.add_row(*row)
    make_console().print(table)


def sdk_version() -> str:
    """Return the version of the installed SDK, or 'not installed'."""
    import importlib.metadata

    try:
        return importlib.metadata.version("halide-autotune-sdk")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


@contextlib.contextmanager
def silent_stderr() -> Iterator[None]:
    """Discard standard error, for a library that cannot be told to be quiet."""
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
    """Show progress on standard error: a spinner on a terminal, else a line a step. Yields what sets the text."""
    if quiet:
        yield lambda step: None
        return
    console = None
    if sys.stderr.isatty():
        from rich.console import Console

        console = Console(stderr=True, highlight=False)
    if console is None or console.is_dumb_terminal:
        sys.stderr.write(text + "\n")
        yield lambda step: print(step, file=sys.stderr)
        return
    # Its spinner is of letters that every terminal has.
    with console.status(text, spinner="line") as status:
        yield lambda step: status.update(step)
