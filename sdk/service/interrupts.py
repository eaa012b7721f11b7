"""Ctrl-C and other signals that end a process: the first one stops a run in order, the second one at once."""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

from halide_autotune.targets.process.stop_signal import StopSignal

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# `timeout` and others send a signal to the process and to its group: one press, two signals.
_SAME_PRESS_S = 0.3


@contextlib.contextmanager
def end_in_order() -> Iterator[None]:
    """Within the block, SIGTERM and SIGHUP raise KeyboardInterrupt, as SIGINT does, so that nothing is left behind.

    Signals that this process ignores stay ignored. Does nothing outside of the main thread.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    is_main = threading.current_thread() is threading.main_thread()
    unhandled = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) == signal.SIG_DFL]
    taken = unhandled if is_main else []
    for each in taken:
        signal.signal(each, handle)
    try:
        yield
    finally:
        for each in taken:
            signal.signal(each, signal.SIG_DFL)


@contextlib.contextmanager
def stop_on_interrupt(stop: StopSignal, announce: Callable[[], None]) -> Iterator[None]:
    """Within the block, the first SIGINT, SIGTERM or SIGHUP sets `stop`; the next raises KeyboardInterrupt.

    Signals that this process ignores (`nohup`, a script's background job) stay ignored. Only for the main thread.

    Args:
        announce: called once, from another thread, after a signal has set `stop`.
    """
    pressed: queue.SimpleQueue[bool] = queue.SimpleQueue()
    first_at_s: float | None = None

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal first_at_s
        now_s = time.monotonic()
        if first_at_s is None:
            first_at_s = now_s
            # A handler runs between any two instructions of the main thread, which may hold the locks that setting
            # a flag or printing needs; this queue needs none.
            pressed.put(True)
        elif now_s - first_at_s > _SAME_PRESS_S:
            raise KeyboardInterrupt

    def tell() -> None:
        if pressed.get():
            stop.set()
            announce()

    teller = threading.Thread(target=tell, daemon=True, name="interrupts")
    teller.start()
    kept = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        for number, handler in kept.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, handle)
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
        pressed.put(False)
        teller.join()
