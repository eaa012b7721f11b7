"""A child process that answers one JSON object per line, with a deadline for each direction."""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from targets.errors import ToolchainError


class ModelProcessError(ToolchainError):
    """The cost-model process could not start, ended by itself, or did not answer in time.

    A run can continue without it: only predictions and training are lost.
    """


_CLOSE_GRACE_S = 5.0
_LOG_TAIL_BYTES = 8192
_LOG_TAIL_LINES = 6
_LIBRARY_CHATTER = re.compile(r"[IWE]\d{4} \d|WARNING: All log messages before")  # what TensorFlow always prints


class LineProcess:
    """A started child. Use it from one thread; only `close` may be called from any.

    Args:
        command: program and arguments.
        environment: the whole environment of the child.
        log_path: the child's standard error is appended to it.

    Raises:
        ModelProcessError: the program or the log cannot be opened. From the methods: the child ended, answered
            something that is not JSON, or was too slow; it is then killed, and the message has the end of its log.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log_path: Path) -> None:
        self._log_path = log_path
        self._unread = b""
        try:
            with log_path.open("ab") as log:
                self._log_start_bytes = log.tell()
                self._child = subprocess.Popen(
                    list(command),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=dict(environment),
                    bufsize=0,
                    start_new_session=True,  # Ctrl-C goes to the parent, which closes its children in order
                )
        except OSError as error:
            raise ModelProcessError(f"The cost-model process cannot be started: {error}.") from error
        os.set_blocking(self._stdin.fileno(), False)  # a child that stopped reading must not hang us

    def send(self, request: Mapping[str, Any], deadline_s: float) -> None:
        """Write one line before the deadline (of `time.monotonic`)."""
        unsent = memoryview(json.dumps(request).encode() + b"\n")
        try:
            while unsent:
                self._wait_for(self._stdin, selectors.EVENT_WRITE, deadline_s)
                unsent = unsent[os.write(self._stdin.fileno(), unsent) :]
        except (OSError, ValueError) as error:  # ValueError: closed by another thread
            raise self._ended() from error
        except KeyboardInterrupt:
            self._child.kill()  # half a line may have been sent
            raise

    def receive(self, deadline_s: float) -> dict[str, Any]:
        """Read one line before the deadline (of `time.monotonic`)."""
        try:
            while b"\n" not in self._unread:
                self._wait_for(self._stdout, selectors.EVENT_READ, deadline_s)
                arrived = os.read(self._stdout.fileno(), 1 << 16)
                if not arrived:
                    raise self._ended()
                self._unread += arrived
        except (OSError, ValueError) as error:
            raise self._ended() from error
        line, _, self._unread = self._unread.partition(b"\n")
        try:
            answer = json.loads(line)
        except ValueError as error:
            self.close()
            raise ModelProcessError(f"The cost-model process answered {line[:80]!r}, which is not JSON.") from error
        return dict(answer)

    def close(self) -> None:
        """End the child by closing its standard input, or by force if that does not help within seconds."""
        with contextlib.suppress(OSError):
            self._stdin.close()
        try:
            self._child.wait(_CLOSE_GRACE_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._stdout.close()

    @property
    def _stdin(self) -> IO[bytes]:
        assert self._child.stdin is not None
        return self._child.stdin

    @property
    def _stdout(self) -> IO[bytes]:
        assert self._child.stdout is not None
        return self._child.stdout

    def _wait_for(self, stream: IO[bytes], event: int, deadline_s: float) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(stream, event)
            if selector.select(max(0.0, deadline_s - time.monotonic())):
                return
        self._child.kill()
        self.close()
        raise ModelProcessError(
            f"The cost-model process did not answer in time and was stopped.{self._log_tail()}",
            next_step="Check whether the machine is overloaded or out of memory.",
        )

    def _ended(self) -> ModelProcessError:
        self.close()
        code = self._child.returncode
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return ModelProcessError(f"The cost-model process {how}.{self._log_tail()}")

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
