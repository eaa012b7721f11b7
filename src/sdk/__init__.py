"""The public face of the SDK: see `halide_autotune.sdk`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from halide_autotune import sdk as _face

if TYPE_CHECKING:
    from halide_autotune.sdk.public import *  # noqa: F403 – it imports only what is public

    __all__: list[str]

    def __getattr__(name: str) -> object: ...


sys.modules[__name__] = _face
