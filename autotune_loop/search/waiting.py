"""Waiting for a task that may be given up, and giving up what takes long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TypeVar

from halide_autotune.targets.errors import SdkError

R = TypeVar("R")

_POLL_S = 0.1


class NotWantedError(SdkError):
    """Ends the building of a batch in the middle: the run is to end, and nothing uses the batch."""

    def __init__(self) -> None:
        super().__init__("The run ends before its next batch was built.")


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


def first_done(futures: Sequence[Future[R]], is_given_up: Callable[[], bool]) -> Future[R] | None:
    """Wait for any of several tasks, the first of which counts if more have ended; None once they are given up, or if
    there is none.
    """
    while futures:
        done = next((each for each in futures if each.done()), None)
        if done is not None:
            return done
        if is_given_up():
            return None
        wait(futures, _POLL_S, FIRST_COMPLETED)
    return None
