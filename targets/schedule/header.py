"""Schedule headers: read them, and make those that Halide emits portable (a stable name, no local paths)."""

from __future__ import annotations

import re
from pathlib import Path

from halide_autotune.targets.errors import GeneratorError

_FUNCTION = re.compile(r"inline void apply_schedule_(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*\(")
_INCLUDE = re.compile(r'^#include "(?P<name>[A-Za-z0-9_][A-Za-z0-9_.+-]*\.schedule\.h)"$', re.MULTILINE)
# The path may have spaces: it ends at the next parameter or at the end of the line.
_LOCAL_PARAMETER = re.compile(r" ?autoscheduler\.weights_path=.*?(?= autoscheduler\.|$)")


def portable_schedule(text: str, name: str) -> str:
    """Return the header with the function `apply_schedule_<name>`, and without the path of the weights.

    Raises:
        GeneratorError: `text` is not a schedule header.
    """
    emitted = schedule_name(text)
    renamed = re.sub(rf"\bapply_schedule_{emitted}\b", f"apply_schedule_{name}", text)
    renamed = re.sub(rf"\b{emitted}_SCHEDULE_H\b", f"{name}_SCHEDULE_H", renamed)
    return (
        "\n".join(_LOCAL_PARAMETER.sub("", line) if line.startswith("//") else line for line in renamed.splitlines())
        + "\n"
    )


def schedule_name(text: str) -> str:
    """Return the <name> of the header's `apply_schedule_<name>`.

    Raises:
        GeneratorError: there is no such function.
    """
    # A header that chooses among several targets starts with theirs.
    *_, found = None, *_FUNCTION.finditer(text)
    if found is None:
        raise GeneratorError(
            "The schedule has no function `inline void apply_schedule_<name>(Pipeline, Target)`.",
            next_step="Give a header that `sdk autotune` or Halide's -e schedule wrote.",
        )
    return found.group("name")


def read_schedule(path: Path) -> str:
    """Return the text of a schedule header; the schedule headers that it includes from its folder are inserted.

    Raises:
        GeneratorError: it cannot be read, or is not a schedule header.
    """
    try:
        text = _INCLUDE.sub(lambda found: _included(path, found), path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise GeneratorError(
            f"The schedule header {path} cannot be read: {error}.", next_step="Check the path and its permissions."
        ) from error
    try:
        schedule_name(text)
    except GeneratorError as error:
        raise GeneratorError(f"{path}: {error.message}", next_step=error.next_step) from error
    return text


def _included(path: Path, found: re.Match[str]) -> str:
    beside = path.parent / found["name"]
    return beside.read_text() if beside.is_file() else found.group()
