"""The user's SSH configuration as one text that paramiko reads rightly."""

from __future__ import annotations

import glob
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

# A keyword of ours: it stands where something cannot be followed, so that only the hosts it concerns are refused.
UNSUPPORTED_KEYWORD = "SdkUnsupported"
_LARGEST_FILE_BYTES = 2**20
_DEEPEST_INCLUDE = 16
_EVERY_HOST = "Host *"
_KEYWORD = re.compile(r"(\w+)(?:\s*=\s*|\s+)(.+)", re.ASCII)
_TRAILING_COMMENT = re.compile(r"\s#.*")
_LONE_CRITERIA = frozenset({"all", "canonical", "final"})
_CRITERIA = frozenset({*_LONE_CRITERIA, "host", "originalhost", "user", "localuser"})


def read_config_text(path: Path) -> str:
    """The text of an SSH configuration; empty when there is no such file.

    `Include` is followed, as paramiko passes over it. What paramiko would misread (a Match whose outcome a program
    or the network decides, or Host lines included inside a block) becomes a line with UNSUPPORTED_KEYWORD in the
    block of the hosts that it decides about.

    Raises:
        OSError: a file is there and cannot be read.
    """
    return "".join(f"{line}\n" for line in _expanded(path, path.parent, 0))


def _expanded(path: Path, folder: Path, depth: int) -> Iterator[str]:
    block = _EVERY_HOST
    for number, line in enumerate(_read_lines(path), 1):
        keyword, value = _split(line)
        where = f"line {number} of {path}"
        if keyword == "host":
            block = line
            yield line
        elif keyword == "match":
            block, remark = _match_line(line, value, where)
            yield block
            if remark:
                yield remark
        elif keyword == "include":
            for included in _included_files(value, folder):
                yield from _included(included, folder, depth + 1, block, where)
            # What follows belongs to the block around the line again.
            yield block
        else:
            yield line


def _included(path: Path, folder: Path, depth: int, block: str, where: str) -> Iterator[str]:
    if depth > _DEEPEST_INCLUDE:
        yield f"{UNSUPPORTED_KEYWORD} {where} includes files too deeply"
        return
    lines = list(_expanded(path, folder, depth))
    if block != _EVERY_HOST and any(_split(line)[0] in ("host", "match") for line in lines):
        yield f"{UNSUPPORTED_KEYWORD} {where} includes Host or Match lines inside a block"
        return
    yield from lines


def _included_files(value: str, folder: Path) -> list[Path]:
    try:
        patterns = shlex.split(value)
    except ValueError:
        patterns = [value]
    found: list[Path] = []
    for pattern in patterns:
        absolute = folder / Path(pattern).expanduser()
        found.extend(path for name in sorted(glob.glob(str(absolute))) if (path := Path(name)).is_file())
    return found


def _match_line(line: str, value: str, where: str) -> tuple[str, str]:
    """The Match line with the criteria that can be judged here; and what to say about the others."""
    try:
        words = shlex.split(value)
    except ValueError:
        return line, ""
    kept: list[str] = []
    left_out: list[str] = []
    while words:
        criterion = words.pop(0)
        name = criterion.removeprefix("!").lower()
        group = [criterion.lower()]
        if name not in _LONE_CRITERIA and words:
            group.append(words.pop(0))
        if name in _CRITERIA:
            kept.extend(group)
        else:
            left_out.append(name)
    if not left_out:
        return line, ""
    remark = f"{UNSUPPORTED_KEYWORD} {where} has 'Match {left_out[0]}'"
    return f"Match {shlex.join(kept)}" if kept else _EVERY_HOST, remark


def _read_lines(path: Path) -> list[str]:
    try:
        with path.open(errors="replace") as file:
            text = file.read(_LARGEST_FILE_BYTES + 1)
    except FileNotFoundError:
        return []
    if len(text) > _LARGEST_FILE_BYTES:
        raise OSError(f"it is larger than {_LARGEST_FILE_BYTES} bytes")
    lines = (line.strip() for line in text.splitlines())
    return [line if '"' in line else _TRAILING_COMMENT.sub("", line) for line in lines if line and line[0] != "#"]


def _split(line: str) -> tuple[str, str]:
    found = _KEYWORD.match(line)
    return (found[1].lower(), found[2]) if found else ("", "")
