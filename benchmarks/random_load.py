"""Other load on this machine: every core busy, switched on and off at random, half of the time."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

_SPIN = "while True: pass"


@contextlib.contextmanager
def random_load(mean_s: float = 1.0, seed: int = 0) -> Iterator[None]:
    """Keep every core busy for exponentially distributed times, with pauses of the same mean `mean_s` between them."""
    cores = sorted(os.sched_getaffinity(0))
    spinning = [subprocess.Popen([sys.executable, "-c", _SPIN]) for _ in cores]
    over = threading.Event()

    def switch() -> None:
        chance = random.Random(seed)
        now, other = signal.SIGSTOP, signal.SIGCONT
        while not over.is_set():
            for process in spinning:
                process.send_signal(now)
            now, other = other, now
            over.wait(chance.expovariate(1 / mean_s))

    switching = threading.Thread(target=switch)
    switching.start()
    try:
        yield
    finally:
        over.set()
        switching.join()
        for process in spinning:
            process.kill()
            process.wait()
