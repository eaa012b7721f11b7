"""A file of bare numbers, which says nothing of itself: `photo.raw:1920x1080x3`, or with the type of its numbers."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

_RAW = re.compile(
    r"(?P<file>.+\.raw):(?P<extents>[1-9]\d{0,8}(?:x[1-9]\d{0,8}){0,7})(?::(?P<type>[a-z]+\d+))?", re.IGNORECASE
)


@dataclass(frozen=True)
class RawFile:
    """Numbers without gaps in little-endian order, Halide's dimension 0 fastest.

    Attributes:
        extents: of Halide's dimensions, 0 first.
        type: as Halide calls it, such as 'uint8'; empty if it is that of the argument, which is not known yet.
    """

    file: Path
    extents: tuple[int, ...]
    type: str = ""

    @classmethod
    def of(cls, path: Path) -> RawFile | None:
        """The file that `photo.raw:1920x1080x3:uint8` means; None for a path that is nothing but that."""
        found = _RAW.fullmatch(str(path))
        if found is None:
            return None
        extents = tuple(map(int, found["extents"].split("x")))
        return cls(Path(found["file"]), extents, (found["type"] or "").lower())

    @property
    def path(self) -> Path:
        """The file with its extents and its type, as `of` reads it."""
        words = (str(self.file), self.extents_text, self.type)
        return Path(":".join(filter(None, words)))

    @property
    def extents_text(self) -> str:
        """'1920x1080x3'."""
        return "x".join(map(str, self.extents))

    @property
    def element_count(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.extents)


def file_of(path: Path) -> Path:
    """The file itself, without what a path says of a raw one."""
    raw = RawFile.of(path)
    return path if raw is None else raw.file
