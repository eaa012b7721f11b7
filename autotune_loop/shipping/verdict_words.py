"""What a play-off has shown, in words that may stand in a header."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def verdict_words(verdict: Mapping[str, Any], *, against_incumbent: bool = False) -> str:
    """'faster: 1.250 times as fast (95 percent interval 1.200 to 1.310)', from a verdict's JSON form.

    Args:
        against_incumbent: as the header in use, and not as the default schedule; the words tell.

    Raises:
        KeyError, TypeError, ValueError, ZeroDivisionError: it is not one.
    """
    reason, estimate = str(verdict["reason"]), verdict["estimate"]
    if estimate is None:
        return reason
    low = "0" if estimate["high"] is None else f"{1 / float(estimate['high']):.3f}"
    high = "inf" if estimate["low"] is None else f"{1 / float(estimate['low']):.3f}"
    compared = "as fast as the header that was in use" if against_incumbent else "as fast"
    return f"{reason}: {1 / float(estimate['ratio']):.3f} times {compared} (95 percent interval {low} to {high})"
