"""Autotune Halide pipelines for the devices they will run on.

    import sdk
    result = sdk.autotune("blur.cpp", target="arm64", options=sdk.RunOptions.of(budget_s=600))
    print(result.best.header, result.best.speed_up)

The names of `sdk.public` are imported when one is first used, so that the command line starts at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sdk.public import *  # noqa: F403 – it has an __all__
    from sdk.public import __all__ as __all__


def __getattr__(name: str) -> object:
    public = importlib.import_module("sdk.public")
    if name != "__all__" and name not in public.__all__:
        raise AttributeError(f"module 'sdk' has no attribute {name!r}")
    return getattr(public, name)


def __dir__() -> list[str]:
    return list(importlib.import_module("sdk.public").__all__)
