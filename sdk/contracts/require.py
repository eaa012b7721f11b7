"""How a check says what an extension does not keep to."""

from __future__ import annotations


def require(is_kept: bool, promise: str, found: object = "") -> None:
    """Raise an AssertionError that names the promise and what was found, unless it is kept."""
    if not is_kept:
        raise AssertionError(f"{promise}; it does not: {found}" if found != "" else f"{promise}; it does not")
