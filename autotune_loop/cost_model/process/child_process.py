"""A child process that is sent objects and answers with objects, with a deadline for each direction."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

from halide_autotune.targets.errors import ToolchainError
from halide_autotune.targets.process.child_guard import forget, start_child


class ModelProcessError(ToolchainError):
    """A process with TensorFlow could not start, ended by itself, or did not answer in time.

    A run can continue without it: only predictions and training are lost.
    """


_CLOSE_GRACE_S = 5.0
# Time for an answer that lies ready.
_READING_S = 1.0
_LOG_TAIL_BYTES = 8192
_LOG_TAIL_LINES = 6
_LIBRARY_CHATTER = re.compile(r"[IWE]\d{4} \d|WARNING: All log messages before")  # what TensorFlow always prints


class ChildProcess:
    """A started child, with a `multiprocessing` connection for its standard input and one for its standard output.

    Use it from one thread; only `close` and `kill` may be called from any.

    Args:
        command: program and arguments.
        environment: the whole environment of the child.
        log_path: the child's standard error is appended to it.
        title: what messages call it.

    Raises:
        ModelProcessError: the program or the log cannot be opened. From the methods: the child ended or was too slow;
            it is then killed, and the message has the end of its log.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], log_path: Path, title: str = "cost-model process"
    ) -> None:
        self._log_path = log_path
        self._title = title
        to_read, self._requests = Pipe(duplex=False)
        self._answers, to_write = Pipe(duplex=False)
        try:
            with to_read, to_write, log_path.open("ab") as log:
                self._log_start_bytes = log.tell()
                # In a session of its own: Ctrl-C goes to the parent, which closes its children in order.
                self._child = start_child(
                    command,
                    stdin=to_read.fileno(),
                    stdout=to_write.fileno(),
                    stderr=log,
                    env=dict(environment),
                )
        except OSError as error:
            raise ModelProcessError(f"The {title} cannot be started: {error}.") from error

    def send(self, request: object, deadline_s: float) -> None:
        """Send an object before the deadline (of `time.monotonic`)."""
        with self._before(deadline_s):
            self._requests.send(request)

    def receive(self, deadline_s: float) -> Any:
        """Wait for an object until the deadline (of `time.monotonic`)."""
        with self._before(deadline_s):
            return self._answers.recv()

    def has_answer(self, limit_s: float) -> bool:
        """Wait for an object, or for the child's end; False if neither comes within the limit."""
        try:
            return self._answers.poll(limit_s)
        except OSError:  # closed, because the child has ended
            return True

    def kill(self) -> None:
        """Kill the child; may be called from any thread."""
        self._child.kill()

    def close(self) -> None:
        """End the child by closing its standard input, or by force if that does not help within seconds."""
        self._requests.close()
        try:
            self._child.wait(_CLOSE_GRACE_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        forget(self._child.pid)
        self._answers.close()

    @contextlib.contextmanager
    def _before(self, deadline_s: float) -> Iterator[None]:
        """Kill the child at the deadline, which ends the wait for it; what it has sent by then is still read."""
        late = threading.Event()

        def stop() -> None:
            late.set()
            self._child.kill()

        timer = threading.Timer(max(_READING_S, deadline_s - time.monotonic()), stop)
        timer.start()
        try:
            yield
        except (OSError, EOFError) as error:
            self.close()
            raise self._late() if late.is_set() else self._ended() from error
        except BaseException:
            self._child.kill()  # half an object may have been sent or received
            raise
        finally:
            timer.cancel()

    def _late(self) -> ModelProcessError:
        return ModelProcessError(
            f"The {self._title} did not answer in time and was stopped.{self._log_tail()}",
            next_step="Check whether the machine is overloaded or out of memory.",
        )

    def _ended(self) -> ModelProcessError:
        code = self._child.returncode
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return ModelProcessError(f"The {self._title} {how}.{self._log_tail()}")

    def _log_tail(self) -> str:
        try:
            with self._log_path.open("rb") as log:
                end_bytes = log.seek(0, os.SEEK_END)
                log.seek(max(self._log_start_bytes, end_bytes - _LOG_TAIL_BYTES))
                lines = log.read().decode(errors="replace").splitlines()
        except OSError:
            return ""
        relevant = [line for line in lines if line.strip() and not _LIBRARY_CHATTER.match(line)]
        tail = "\n".join(relevant[-_LOG_TAIL_LINES:])
        return f" The end of its log {self._log_path}:\n{tail}\n" if tail else f" Its log is {self._log_path}."
