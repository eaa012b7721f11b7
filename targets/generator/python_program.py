"""A Python generator: a child process imports it once and forks for every run."""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from targets.errors import GeneratorError
from targets.process.content_cache import file_sha256
from targets.process.limited_process import ProcessLimits, ProcessOutcome, cpu_limit_s, kill_group, read_tail
from targets.process.stop_signal import StopSignal

_START_TIME_S = 60.0
_POLL_S = 0.05
# The server reports a killed child at once; this limits the wait for a server that died.
_AFTER_KILL_S = 10.0


class PythonGeneratorProgram:
    """Runs the `@hl.generator` classes of one Python file. Several threads may use it.

    Raises:
        GeneratorError: the import fails or hangs, or the file registers no generator.
    """

    def __init__(self, file: Path, environment: Mapping[str, str], plugins: Sequence[Path] = ()) -> None:
        self.sha256 = file_sha256(file)
        self._file = file
        self._waiting: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        self._last_id = 0
        self._is_dead = False
        self._socket, child_socket = socket.socketpair()
        with child_socket:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "targets.generator.python_server", str(file), *map(str, plugins)],
                stdin=child_socket.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=dict(environment),
                start_new_session=True,
            )
        self._lines = self._socket.makefile("rb")
        self.names = self._await_ready()
        threading.Thread(target=self._dispatch, daemon=True, name="python-generator").start()

    def _await_ready(self) -> tuple[str, ...]:
        self._socket.settimeout(_START_TIME_S)
        try:
            line = self._lines.readline()
        except TimeoutError as error:
            self.close()
            raise GeneratorError(
                f"The import of {self._file} did not end within {_START_TIME_S:.0f} s.",
                next_step="Move slow work from the module's top level into generate().",
            ) from error
        self._socket.settimeout(None)
        answer = json.loads(line) if line else {"event": "failed", "message": "the interpreter died"}
        if answer["event"] == "failed":
            self.close()
            raise GeneratorError(
                f"{self._file} cannot be imported: {_last_line(answer['message'])}\n{answer['message'].rstrip()}",
                next_step="\nFix the file; `python FILE` shows the same error.",
            )
        if not answer["names"]:
            self.close()
            raise GeneratorError(
                f"{self._file} registers no generator.",
                next_step='Put @hl.generator(name="…") above a class derived from hl.Generator.',
            )
        return tuple(answer["names"])

    def run(self, arguments: Sequence[str], limits: ProcessLimits, stop: StopSignal | None = None) -> ProcessOutcome:
        """Run Halide's main with `arguments` in a fork of the process."""
        answers: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        started = time.monotonic()
        with tempfile.NamedTemporaryFile(prefix="sdk-generator-") as log:
            request_id = self._request(arguments, limits, log.name, answers)
            timed_out, stopped, ended = self._await_end(answers, started + limits.time_s, stop)
            with self._lock:
                self._waiting.pop(request_id, None)
            return ProcessOutcome(
                exit_code=int(ended["exit_code"]),
                timed_out=timed_out,
                stopped=stopped,
                duration_s=time.monotonic() - started,
                peak_memory_bytes=int(ended["peak_memory_bytes"]),
                memory_limit_bytes=limits.memory_bytes,
                log=read_tail(log),
            )

    def _request(
        self,
        arguments: Sequence[str],
        limits: ProcessLimits,
        log_path: str,
        answers: queue.SimpleQueue[dict[str, Any]],
    ) -> int:
        with self._lock:
            if self._is_dead or self._process.poll() is not None:
                raise self._died()
            self._last_id += 1
            self._waiting[self._last_id] = answers
            request = {
                "id": self._last_id,
                "arguments": list(arguments),
                "log": log_path,
                "memory_bytes": limits.memory_bytes,
                "cpu_s": cpu_limit_s(limits),
                "cores": None if limits.cores is None else sorted(limits.cores),
            }
            try:
                self._socket.sendall(json.dumps(request).encode() + b"\n")
            except OSError as error:
                raise self._died() from error
            return self._last_id

    def _died(self) -> GeneratorError:
        return GeneratorError(
            f"The process that runs {self._file} has died (exit code {self._process.poll()}).",
            next_step="Try again. If it happens again, run the file with python to see why.",
        )

    def _await_end(
        self, answers: queue.SimpleQueue[dict[str, Any]], deadline: float, stop: StopSignal | None
    ) -> tuple[bool, bool, dict[str, Any]]:
        pid: int | None = None
        timed_out = stopped = False
        while True:
            try:
                answer = answers.get(timeout=_POLL_S)
            except queue.Empty:
                now = time.monotonic()
                if pid is not None and not (timed_out or stopped):
                    stopped = stop is not None and stop.is_set()
                    timed_out = not stopped and now > deadline
                    if timed_out or stopped:
                        kill_group(pid)
                if now > deadline + _AFTER_KILL_S:
                    return True, stopped, {"exit_code": -9, "peak_memory_bytes": 0}
                continue
            if answer["event"] == "started":
                pid = answer["pid"]
            else:
                if pid is not None and answer.get("server_died"):
                    kill_group(pid)  # the server cannot
                return timed_out, stopped, answer

    def _dispatch(self) -> None:
        # A server that dies before it reads a request resets the connection.
        with contextlib.suppress(OSError, ValueError):
            for line in self._lines:
                answer = json.loads(line)
                with self._lock:
                    waiting = self._waiting.get(answer["id"])
                if waiting is not None:
                    waiting.put(answer)
        with self._lock:
            self._is_dead = True
            for waiting in self._waiting.values():
                waiting.put({"event": "ended", "exit_code": -9, "peak_memory_bytes": 0, "server_died": True})

    def close(self) -> None:
        """End the server and all its runs."""
        self._socket.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            kill_group(self._process.pid)
            self._process.wait()
        self._lines.close()
        self._socket.close()


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no message"
