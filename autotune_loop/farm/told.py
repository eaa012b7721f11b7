"""What other processes of a farm say, read into dataclasses: in the bounds that they declare, and fit to be shown."""

from __future__ import annotations

from typing import Annotated, TypeVar

from halide_autotune.targets.errors import FarmError
from halide_autotune.targets.values.checks import Unfit, number, whole_number
from halide_autotune.targets.values.records import plain, record

T = TypeVar("T")

Count = Annotated[int, whole_number(0, 2**31 - 1)]
"""In a dataclass for `read_told`: how many of something."""
DurationS = Annotated[float, number(0, 1e12)]
"""The same for seconds, and for a time since 1970."""


class BadMessageError(FarmError):
    """A message of the farm is not what it should be: the fault of who has sent it."""


def read_told(kind: type[T], told: object) -> T:
    """Return what another process says as a dataclass; keys that it does not declare are left out.

    Raises:
        BadMessageError: a field is missing or has a wrong value.
    """
    try:
        return record(kind, passes_unknown=True)(plain(told))
    except Unfit as error:
        raise BadMessageError(error.message("What a process of the farm says of itself")) from error
    except RecursionError as error:
        raise BadMessageError("What a process of the farm says of itself is nested too deeply.") from error
