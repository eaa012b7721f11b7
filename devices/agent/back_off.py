"""Trying again where trying again can help."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from devices.device_trouble import DeviceTrouble, TroubleKind

_Value = TypeVar("_Value")
_DELAYS_S = (0.5, 1.0, 2.0)
# The rest needs a person, another device, or room.
PASSING_KINDS = frozenset({TroubleKind.UNREACHABLE, TroubleKind.LOST, TroubleKind.TIMEOUT, TroubleKind.PROTOCOL_ERROR})


def with_back_off(attempt: Callable[[], _Value]) -> _Value:
    """What `attempt` returns; up to three more times, at growing distances, after trouble that may pass.

    Raises:
        DeviceTrouble: that of the last attempt, or the first one that trying again cannot help.
    """
    for delay_s in _DELAYS_S:
        try:
            return attempt()
        except DeviceTrouble as trouble:
            if trouble.kind not in PASSING_KINDS:
                raise
        time.sleep(delay_s)
    return attempt()
