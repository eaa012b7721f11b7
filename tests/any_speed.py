"""For tests whose boards are all this machine: what else runs on it, and makes it slow, spoils no time and no board."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

import pytest

from halide_autotune.autotune_loop.store import board_factor
from halide_autotune.devices.health import canary


@contextlib.contextmanager
def any_speed_is_usual() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(canary, "LARGEST_DRIFT", math.inf)
        patch.setattr(canary, "LARGEST_CHANGE", math.inf)
        patch.setattr(board_factor, "LARGEST_SCATTER", math.inf)
        yield
