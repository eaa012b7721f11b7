"""The client of the process in which others compute a network."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from halide_autotune.autotune_loop.cost_model.process.child_process import ChildProcess
from halide_autotune.autotune_loop.cost_model.process.model_process import IMPORT_ROOT, tensorflow_environment

# A large model is converted meanwhile.
_START_LIMIT_S = 900.0
_REQUEST_LIMIT_S = 600.0


class PeerProcess:
    """Computes a network with TensorFlow (a `tf.function`, its oneDNN) and LiteRT (its XNNPACK) in one child process.

    Args:
        model: as for `read_model`.
        threads: that each may use.
        cores: that the process may use; none for all.
        log_path: receives what the child and its libraries print.
        environment: the child's; TensorFlow's own settings are added.

    Raises:
        ModelProcessError: also from the methods: it cannot be started, has ended or is too slow.
    """

    def __init__(
        self, model: str, threads: int, cores: Collection[int], log_path: Path, environment: Mapping[str, str]
    ) -> None:
        module = "halide_autotune.autotune_loop.measure.peers.peer_worker"
        words = [model, str(threads), ",".join(map(str, sorted(cores)))]
        own = tensorflow_environment(environment, threads)
        own["PYTHONPATH"] = os.pathsep.join(filter(None, [str(IMPORT_ROOT), environment.get("PYTHONPATH", "")]))
        command = [sys.executable, "-P", "-m", module, *words]
        self._child = ChildProcess(command, own, log_path, "process of TensorFlow and LiteRT")

    def await_start(self) -> dict[str, str | None]:
        """Wait until they can be timed: why each cannot, or None, by its name."""
        found: dict[str, str | None] = self._child.receive(time.monotonic() + _START_LIMIT_S)
        return found

    def median_ms(self, peer: str, repetitions: int) -> float:
        """Compute the network a number of times; the median of a call."""
        deadline_s = time.monotonic() + _REQUEST_LIMIT_S
        self._child.send((peer, repetitions), deadline_s)
        return float(self._child.receive(deadline_s))

    def close(self) -> None:
        """End the process."""
        self._child.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
