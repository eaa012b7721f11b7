"""Texts: values as people write them on a command line, and what others say, made fit to be shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.values.raw_file import file_of

_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>s|m|h)?", re.ASCII)
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}
_MEMORY = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>[KMGT]?)(?:i?B)?", re.IGNORECASE)
_BYTES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_SIZE = re.compile(r"\d{1,10}(x\d{1,10})*")
_PLACED_SIZE = re.compile(r"[1-9]\d{0,8}(x[1-9]\d{0,8})*(@-?\d{1,9}(x-?\d{1,9})*)?")


def brief_duration(duration_s: float) -> str:
    """'90 s' or '10 min'."""
    return f"{duration_s:.0f} s" if duration_s < 120 else f"{duration_s / 60:.0f} min"


def parse_duration_s(text: str) -> float:
    """'90', '90s', '10m' or '1.5h' in seconds.

    Raises:
        UsageError: it is none of these, or zero.
    """
    found = _DURATION.fullmatch(text.strip())
    seconds = float(found["number"]) * _SECONDS[found["unit"]] if found else 0.0
    if seconds <= 0:
        raise UsageError(f"{text!r} is not a duration.", next_step="Write it as 90s, 10m or 1.5h.")
    return seconds


def parse_memory_bytes(text: str) -> int:
    """'4G', '512M', '1.5GiB' or '1048576' in bytes; the units are powers of 1024.

    Raises:
        UsageError: it is none of these, or zero.
    """
    found = _MEMORY.fullmatch(text.strip())
    size_bytes = int(float(found["number"]) * _BYTES[found["unit"].upper()]) if found else 0
    if size_bytes <= 0:
        raise UsageError(f"{text!r} is not an amount of memory.", next_step="Write it as 4G or 512M.")
    return size_bytes


def parse_sizes(items: Iterable[str]) -> dict[str, str]:
    """Argument → extents such as '1920x1080', dimension 0 first.

    Raises:
        UsageError: an item is not `NAME=SIZE`, or names an argument again.
    """
    sizes = _named("--size", items, "input=1920x1080")
    return _checked("--size", sizes, _SIZE.fullmatch, "a size", "Write it as 1920x1080 or 1920x1080x3.")


def parse_estimates(items: Iterable[str]) -> dict[str, str]:
    """Argument → extents such as '1920x1080', perhaps with the least coordinates '1920x1080@-2x3', or a scalar's value.

    Raises:
        UsageError: an item is none of these, or names an argument again.
    """
    estimates = _named("--estimate", items, "input=1920x1080 or gain=1.5")
    next_step = "Write it as 1920x1080, 1920x1080@-2x3 or 1.5."
    return _checked("--estimate", estimates, _is_estimate, "a size or a value", next_step)


def parse_size_set(text: str) -> dict[str, str]:
    """Argument → its size or value, of one text such as 'input=640x480 gain=1.5'.

    Raises:
        UsageError: it is empty, an item is none of these, or it names an argument again.
    """
    example = '"input=640x480" or "input=640x480 mask=640x480"'
    sizes = _named("--also-size", text.split() or [text], example)
    next_step = "Write sizes as 640x480 or 640x480@-2x3, with spaces between the arguments."
    return _checked("--also-size", sizes, _is_estimate, "a size or a value", next_step)


def parse_size_sets(items: Iterable[str]) -> list[str]:
    """Texts as `parse_size_set` reads them.

    Raises:
        UsageError: one of them is none.
    """
    return [size_set_text(parse_size_set(item)) for item in items]


def size_set_text(sizes: Mapping[str, str]) -> str:
    """What `parse_size_set` reads."""
    return " ".join(f"{name}={text}" for name, text in sizes.items())


def parse_scalars(items: Iterable[str]) -> dict[str, str]:
    """Argument → value, a number or true or false.

    Raises:
        UsageError: an item is not `NAME=VALUE`, or names an argument again.
    """
    scalars = _named("--scalar", items, "gain=1.5")
    return _checked("--scalar", scalars, _is_scalar, "a value", "Write a number, or true or false.")


def parse_input_files(items: Iterable[str]) -> dict[str, Path]:
    """Argument → a file that exists: a `.npy` file, a picture, or `photo.raw:1920x1080` as `RawFile.of` reads it.

    Raises:
        UsageError: an item is not `NAME=FILE.npy`, names an argument again, or there is no such file.
    """
    files = {name: Path(file) for name, file in _named("--input", items, "input=photo.npy").items()}
    for name, file in files.items():
        if not file_of(file).is_file():
            raise UsageError(f"--input {name}={file}: there is no such file.")
    return files


def _named(option: str, items: Iterable[str], example: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not value or not _NAME.fullmatch(name):
            raise UsageError(
                f"{option} {item!r} is not of the form NAME=VALUE.",
                next_step=f"Write it as, for example, {option} {example}.",
            )
        if name in values:
            raise UsageError(f"{option} names {name} twice.")
        values[name] = value
    return values


def _checked(
    option: str, values: dict[str, str], is_right: Callable[[str], object], what: str, next_step: str
) -> dict[str, str]:
    for name, value in values.items():
        if not is_right(value):
            raise UsageError(f"{option} {name}={value}: {value!r} is not {what}.", next_step=next_step)
    return values


def _is_estimate(text: str) -> bool:
    if _PLACED_SIZE.fullmatch(text):
        extents, _, mins = text.partition("@")
        return not mins or mins.count("x") == extents.count("x")
    return _is_scalar(text)


def _is_scalar(text: str) -> bool:
    if text in ("true", "false"):
        return True
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text and text == text.strip()


def printable(text: str) -> str:
    """Return `text` on one line, with a blank for each unprintable character."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def printable_lines(text: str) -> str:
    """Return `text` with a blank for each unprintable character; its lines stay, and how far they are indented."""
    return "\n".join("".join(c if c.isprintable() else " " for c in line).rstrip() for line in text.splitlines())
