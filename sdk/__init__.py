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
    from halide_autotune.sdk.public import *  # noqa: F403 – it imports only what is public

    __all__: list[str]


def __getattr__(name: str) -> object:
    if name == "__all__":
        return __dir__()
    if name not in __dir__():
        raise AttributeError(f"module 'sdk' has no attribute {name!r}")
    return getattr(importlib.import_module("halide_autotune.sdk.public"), name)


def __dir__() -> list[str]:
    return [name for name in vars(importlib.import_module("halide_autotune.sdk.public")) if not name.startswith("_")]
