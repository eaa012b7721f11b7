"""Methods that work something out once for each argument."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")


def kept(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Keep what a method gives for each argument in its object, which must not change.

    Not `functools.cache`, which keeps the object, too, and wants to hash it.
    """
    name = f"{method.__qualname__}()"

    @functools.wraps(method)
    def once(self: S, /, *args: P.args, **no_keywords: P.kwargs) -> R:
        known: dict[object, R] = vars(self).setdefault(name, {})
        if args not in known:
            known[args] = method(self, *args, **no_keywords)
        return known[args]

    return once
