"""The loops of headers, for people, and how those of several differ."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.autotune_loop.schedule.print_loops import print_loops
from halide_autotune.targets.errors import GeneratorError


def shown_loops(header: str) -> str:
    """The loops of a header, or why they cannot be shown."""
    try:
        return print_loops(parse_schedule(header))
    except GeneratorError as error:
        return f"This header cannot be shown as loops: {error}"


def loops_difference(texts: Mapping[str, str]) -> str:
    """How the loops of each differ from those of the first, line by line as `diff -u` shows it.

    Args:
        texts: label → loops; at least one.
    """
    (first, before), *others = texts.items()
    lines: list[str] = []
    for label, after in others:
        lines += difflib.unified_diff(before.splitlines(), after.splitlines(), first, label, lineterm="", n=1000)
        if before == after:
            lines.append(f"{first} and {label} have the same loops.")
    return "\n".join(lines)
