"""A Python generator: a child process imports it once and forks for every run."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.declared_parameter import DeclaredParameter, parameters_of_python
from halide_autotune.targets.generator.preload import Preload
from halide_autotune.targets.generator.python_server import LONGEST_MESSAGE_BYTES
from halide_autotune.targets.process.child_guard import forget, start_child, watch_over
from halide_autotune.targets.process.content_cache import file_sha256
from halide_autotune.targets.process.limited_process import (
    ProcessLimits,
    ProcessOutcome,
    await_child,
    kill_group,
    read_tail,
)
from halide_autotune.targets.process.stop_signal import StopSignal

_START_TIME_S = 60.0
# The server reports a killed child at once; this limits the wait for a server that died.
_AFTER_KILL_S = 10.0


class PythonGeneratorProgram:
    """Runs the `@hl.generator` classes of one Python file. Several threads may use it.

    Args:
        plugins: loaded once, into the process that all runs are forks of.
        halide_library: needed for runs with `preload`.

    Raises:
        GeneratorError: the import fails or hangs, or the file registers no generator.
    """

    def __init__(
        self,
        file: Path,
        environment: Mapping[str, str],
        plugins: Sequence[Path] = (),
        halide_library: Path | None = None,
    ) -> None:
        self.sha256 = file_sha256(file)
        self._file = file
        self._environment = environment
        self._halide_library = halide_library
        self._of_preloads: dict[Path, PythonGeneratorProgram] = {}
        self._lock = threading.Lock()
        self._socket, child_socket = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with child_socket:
            self._process = start_child(
                # -P: a targets.py in the working directory is the user's.
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "halide_autotune.targets.generator.python_server",
                    str(file),
                    *map(str, plugins),
                ],
                stdin=child_socket.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=dict(environment),
            )
        self.names = self._await_ready()

    def _await_ready(self) -> tuple[str, ...]:
        self._socket.settimeout(_START_TIME_S)
        try:
            message = self._socket.recv(LONGEST_MESSAGE_BYTES)
        except TimeoutError as error:
            self.close()
            raise GeneratorError(
                f"The import of {self._file} did not end within {_START_TIME_S:.0f} s.",
                next_step="Move slow work from the module's top level into generate().",
            ) from error
        self._socket.settimeout(None)
        answer: dict[str, Any] = json.loads(message) if message else {"failure": "the interpreter died"}
        if failure := answer.get("failure"):
            self.close()
            raise GeneratorError(
                f"{self._file} cannot be imported: {_last_line(failure)}\n{failure.rstrip()}",
                next_step="\nFix the file; `python FILE` shows the same error.",
            )
        if not answer["names"]:
            self.close()
            raise GeneratorError(
                f"{self._file} registers no generator.",
                next_step='Put @hl.generator(name="…") above a class derived from hl.Generator.',
            )
        self._parameters: dict[str, dict[str, object]] = answer["parameters"]
        return tuple(answer["names"])

    def parameters(self, name: str) -> dict[str, DeclaredParameter]:
        """The parameters that a generator declares."""
        return parameters_of_python(self._parameters[name])

    def run(
        self,
        arguments: Sequence[str],
        limits: ProcessLimits,
        stop: StopSignal | None = None,
        preload: Preload | None = None,
    ) -> ProcessOutcome:
        """Run Halide's main with `arguments` in a fork of the process; see `GeneratorProgram.run`."""
        if preload is not None:
            return self._preloaded(preload)._run(arguments, limits, stop, preload.variables)
        return self._run(arguments, limits, stop, {})

    def _run(
        self,
        arguments: Sequence[str],
        limits: ProcessLimits,
        stop: StopSignal | None,
        variables: Mapping[str, str],
    ) -> ProcessOutcome:
        started = time.monotonic()
        answers, server_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with answers, tempfile.TemporaryFile(prefix="sdk-generator-") as log:
            with server_end:
                self._request(arguments, limits, variables, [server_end.fileno(), log.fileno()])
            timed_out, stopped, paused_s = False, False, 0.0
            ended: dict[str, Any] = {}
            pid = _answer(answers, limits.time_s + _AFTER_KILL_S).get("pid")
            if pid is not None:
                watch_over(pid)  # it has a group of its own, which a server that is killed leaves alone
                try:
                    timed_out, stopped, paused_s = await_child(pid, answers.fileno(), limits, stop)
                    if timed_out or stopped:
                        kill_group(pid)
                    ended = _answer(answers, _AFTER_KILL_S)
                finally:
                    if not ended:
                        kill_group(pid)  # the server has died, and cannot
                    forget(pid)
            duration_s = time.monotonic() - started - paused_s
            return ProcessOutcome(
                exit_code=ended.get("exit_code", -signal.SIGKILL),
                timed_out=timed_out or (not ended and duration_s > limits.time_s),
                stopped=stopped,
                duration_s=duration_s,
                peak_memory_bytes=ended.get("peak_memory_bytes", 0),
                limits=limits,
                log=read_tail(log),
            )

    def _preloaded(self, preload: Preload) -> PythonGeneratorProgram:
        """The same file in a process that began with the shared object; kept for further runs."""
        # What is preloaded uses Halide, which the interpreter itself is not linked with.
        assert self._halide_library is not None, "a program for preloaded runs is opened with Halide's library"
        with self._lock:
            if preload.library not in self._of_preloads:
                environment = preload.environment(self._environment, self._halide_library)
                self._of_preloads[preload.library] = PythonGeneratorProgram(self._file, environment)
            return self._of_preloads[preload.library]

    def _request(
        self, arguments: Sequence[str], limits: ProcessLimits, variables: Mapping[str, str], files: list[int]
    ) -> None:
        cores = None if limits.cores is None else sorted(limits.cores)
        given = {"time_s": limits.time_s, "memory_bytes": limits.memory_bytes, "cores": cores}
        request = {"arguments": list(arguments), "variables": dict(variables), "limits": given}
        try:
            socket.send_fds(self._socket, [json.dumps(request).encode()], files)
        except OSError as error:
            raise GeneratorError(
                f"The process that runs {self._file} has died (exit code {self._process.poll()}).",
                next_step="Try again. If it happens again, run the file with python to see why.",
            ) from error

    def close(self) -> None:
        """End the server and all its runs."""
        for program in self._of_preloads.values():
            program.close()
        self._socket.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            kill_group(self._process.pid)
            self._process.wait()
        forget(self._process.pid)
        self._socket.close()


def _answer(answers: socket.socket, within_s: float) -> dict[str, Any]:
    """Return the server's next message about a run; an empty one if the server has died, or hangs."""
    answers.settimeout(within_s)
    try:
        return json.loads(answers.recv(LONGEST_MESSAGE_BYTES) or b"{}")  # type: ignore[no-any-return]  # the server sends objects
    except OSError:
        return {}


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no message"
