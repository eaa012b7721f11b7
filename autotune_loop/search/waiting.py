"""Waiting for a task that may be given up."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

R = TypeVar("R")

_POLL_S = 0.1


def result_unless(future: Future[R], is_given_up: Callable[[], bool]) -> R | None:
    """Wait for a task's result; None, with the task cancelled unless it has begun, once it is given up.

    Raises:
        Exception: what the task has raised.
    """
    while not future.done():
        if is_given_up():
            future.cancel()
            return None
        wait([future], _POLL_S)
    return future.result()
