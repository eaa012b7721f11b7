"""Amounts of memory as a user writes them."""

from __future__ import annotations

import re

from targets.errors import UsageError

_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>[KMGT]?)(?:i?B)?", re.IGNORECASE)
_BYTES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def parse_memory_bytes(text: str) -> int:
    """'4G', '512M', '1.5GiB' or '1048576' in bytes; the units are powers of 1024.

    Raises:
        UsageError: it is none of these, or zero.
    """
    found = _SIZE.fullmatch(text.strip())
    size_bytes = int(float(found["number"]) * _BYTES[found["unit"].upper()]) if found else 0
    if size_bytes <= 0:
        raise UsageError(f"{text!r} is not an amount of memory.", next_step="Write it as 4G or 512M.")
    return size_bytes
