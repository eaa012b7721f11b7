"""Which names a file on a device may have."""

from __future__ import annotations

import re

from targets.errors import DeviceError

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,199}")


def check_name(name: str) -> str:
    """`name`, when it is a plain file name that needs no quoting anywhere.

    Raises:
        DeviceError: it has a separator, a leading dot or dash, a space or another odd character.
    """
    if not _NAME.fullmatch(name):
        raise DeviceError(
            f"{name!r} is not a file name that can be used on a device.",
            next_step="Use letters, digits, underscores, dots, plus and minus signs.",
        )
    return name
