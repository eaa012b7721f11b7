"""TensorFlow imported once for many runs: a process that has it forks a model worker for whoever asks.

That saves four seconds of a core in each run that a test starts. Tests of the model's process itself start real ones.

    python -m tests.tensorflow_fork serve SOCKET        until its standard input closes
    python tensorflow_fork.py ask SOCKET ARGUMENT...    is a model worker, as far as its caller can tell
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import unittest.mock
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

_MODULE = "halide_autotune.autotune_loop.cost_model.process.model_worker"
_FDS = (0, 1, 2)
_REQUEST_BYTES = 1 << 16


@contextlib.contextmanager
def shared_tensorflow() -> Iterator[None]:
    """Model processes that this process starts meanwhile are forks of one that has imported TensorFlow."""
    from halide_autotune.autotune_loop.cost_model.process import model_process
    from halide_autotune.autotune_loop.cost_model.process.child_process import ChildProcess

    folder = tempfile.TemporaryDirectory(prefix="fork-")  # names of sockets are short
    address = Path(folder.name) / "socket"
    server: list[subprocess.Popen[bytes]] = []
    lock = threading.Lock()

    def start(command: Sequence[str], environment: Mapping[str, str], log_path: Path) -> ChildProcess:
        with lock:
            if not server:
                server.append(_started_server(address, environment))
        arguments = command[command.index(_MODULE) + 1 :]
        return ChildProcess(
            [sys.executable, "-S", "-E", __file__, "ask", str(address), *arguments], environment, log_path
        )

    try:
        with unittest.mock.patch.object(model_process, "ChildProcess", start):
            yield
    finally:
        for process in server:
            process.communicate()
        folder.cleanup()


def _started_server(address: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.tensorflow_fork", "serve", str(address)]
    own = {key: value for key, value in environment.items() if key != "TMPDIR"}  # a folder of the first run
    log = address.with_name("log")
    with log.open("wb") as errors:  # not where a test captures what is printed
        process = subprocess.Popen(
            command,
            cwd=Path(__file__).parents[1],
            env=own,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
    assert process.stdout is not None and process.stdout.readline() == b"ready\n", log.read_text()
    return process


def _serve(address: str) -> None:
    import tensorflow  # noqa: F401  # what it forks has it then

    from halide_autotune.autotune_loop.cost_model.process import model_worker

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        listener.listen(64)
        print("ready", flush=True)
        threading.Thread(target=_end_with_standard_input, daemon=True).start()
        while True:
            asked, _ = listener.accept()
            request, fds, _, _ = socket.recv_fds(asked, _REQUEST_BYTES, len(_FDS))
            if os.fork() == 0:
                listener.close()
                _work(model_worker.main, asked, json.loads(request), fds)
            for descriptor in fds:
                os.close(descriptor)
            asked.close()


def _end_with_standard_input() -> None:
    os.read(0, 1)  # through `sys.stdin` it would hold a lock, which forks inherit
    os._exit(0)


def _work(
    main: Callable[[Sequence[str]], int], asked: socket.socket, request: dict[str, Any], fds: Sequence[int]
) -> NoReturn:
    """Be the model worker of a request, and end."""
    code = 1
    try:
        for target, descriptor in zip(_FDS, fds, strict=True):
            os.dup2(descriptor, target)
            os.close(descriptor)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        os.environ.clear()
        os.environ.update(request["environment"])
        tempfile.tempdir = None  # TMPDIR is the run's, where TensorFlow leaves the code that it writes
        os.chdir(request["folder"])
        code = main(request["arguments"])
    except Exception:
        traceback.print_exc()
    finally:
        asked.sendall(b"%d" % code)
        os._exit(code)


def _ask(address: str, arguments: Sequence[str]) -> int:
    request = {"arguments": arguments, "environment": dict(os.environ), "folder": os.getcwd()}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.connect(address)
        socket.send_fds(server, [json.dumps(request).encode()], list(_FDS))
        for descriptor in _FDS[:2]:
            os.close(descriptor)  # the fork alone has them now
        # Empty where it ended itself, because its standard input was closed.
        return int(server.recv(16) or b"0")


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        _serve(sys.argv[2])
    else:
        sys.exit(_ask(sys.argv[2], sys.argv[3:]))
