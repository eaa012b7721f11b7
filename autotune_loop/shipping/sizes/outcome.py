"""What becomes of a schedule at a size."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class SizeVerdict(Enum):
    """How a call at a size ended."""

    ACCEPTED = "accepted"
    # Halide's own checks stopped it before anything was computed: the caller gets an error code.
    REFUSED = "refused by Halide"
    WRONG_OUTPUT = "wrong output"
    FAILED = "failed"


@dataclass(frozen=True)
class SizeOutcome:
    """One size's verdict.

    Attributes:
        size: of the first output, such as '1920x1080' or '640x480@3x5' with the least coordinates behind the @.
        message: why it was not accepted; empty where it was.
    """

    size: str
    verdict: SizeVerdict
    message: str
