"""The headers in use today, as options name them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from halide_autotune.targets.errors import UsageError


def parse_incumbents(texts: Iterable[str]) -> dict[str, Path]:
    """Parse items NAME=HEADER into name → header; the name of a header alone is ''.

    Raises:
        UsageError: a name is given twice, or a file does not exist.
    """
    incumbents: dict[str, Path] = {}
    for text in texts:
        name, separator, header = text.partition("=")
        if not separator or Path(text).is_file():
            name, header = "", text
        if name in incumbents:
            raise UsageError(f"--incumbent is given twice{f' for {name}' if name else ''}.")
        if not Path(header).is_file():
            raise UsageError(f"--incumbent: there is no file {header}.", next_step="Give the path of a .schedule.h.")
        incumbents[name] = Path(header)
    return incumbents
