"""The child that runs a Python generator: `python -m targets.generator.python_server FILE`.

It imports halide and the user's file once and forks for every request, so that the start of the interpreter and the
imports are paid once. Requests and answers are JSON lines on file descriptor 0 (a socket):

    → {"id": 1, "arguments": ["-g", "blur", …], "log": "/tmp/…", "memory_bytes": …, "cpu_s": …,
       "cores": [0, 1] or null}
    ← {"event": "ready", "names": ["blur"]}  or  {"event": "failed", "message": "…"}
    ← {"event": "started", "id": 1, "pid": 123}
    ← {"event": "ended", "id": 1, "exit_code": 0, "peak_memory_bytes": …}

When the socket closes, it ends with its children.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import resource
import select
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

_TRUE_WORDS = ("true", "1", "yes", "on")
_FALSE_WORDS = ("false", "0", "no", "off", "")
_MODULE_NAME = "sdk_user_generator"


def main() -> None:
    """Import the file, send the names of its generators, and serve requests until the socket closes."""
    connection = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        names = _load(Path(sys.argv[1]), [Path(p) for p in sys.argv[2:]])
    except BaseException as error:
        _send(connection, {"event": "failed", "message": _user_traceback(error, sys.argv[0])})
        return
    _send(connection, {"event": "ready", "names": names})
    _serve(connection)


def _user_traceback(error: BaseException, file: str) -> str:
    """Format the error with the frames from the user's file on; those before are of the import."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename != file:
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames, chain=False))


def _load(file: Path, plugins: list[Path]) -> list[str]:
    sys.path.insert(0, str(file.parent))
    sys.argv = [str(file)]
    import halide

    _fix_halide_21()
    _name_like_a_script()
    for plugin in plugins:
        halide.load_plugin(str(plugin))
    spec = importlib.util.spec_from_file_location(_MODULE_NAME, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return sorted(halide._generator_helpers._get_python_generator_names())


def _fix_halide_21() -> None:
    """Fix two bugs of Halide 21's Python generators in this process.

    `autoscheduler.KEY=VALUE` goes into a copy of the parameter map and is lost, so that every search would have the
    default parameters (`_generator_helpers.py`, `Generator._set_generatorparam_value`). A boolean parameter given as
    text is always true (`GeneratorParam._parse_value`).
    """
    import halide

    original_set = halide.Generator._set_generatorparam_value
    original_parse = halide.GeneratorParam._parse_value

    def set_value(self: Any, name: str, value: Any) -> None:
        if not name.startswith("autoscheduler."):
            original_set(self, name, value)
            return
        kept = self._autoscheduler
        self._autoscheduler = halide.AutoschedulerParams(
            kept.name, {**dict(kept.extra), name.removeprefix("autoscheduler."): value}
        )

    def parse_value(name: str, parameter_type: type, value: Any) -> object:
        if parameter_type is bool and isinstance(value, str):
            if value.lower() not in _TRUE_WORDS + _FALSE_WORDS:
                raise halide.HalideError(f"The value {value} of GeneratorParam {name} is not true or false")
            return value.lower() in _TRUE_WORDS
        return original_parse(name, parameter_type, value)

    halide.Generator._set_generatorparam_value = set_value
    halide.GeneratorParam._parse_value = staticmethod(parse_value)


def _name_like_a_script() -> None:
    """Name a class under `@hl.generator()` without a name as `python FILE -g NAME` does."""
    from halide import _generator_helpers

    original = _generator_helpers._fqname

    def name_of(registered: type) -> str:
        return registered.__qualname__ if registered.__module__ == _MODULE_NAME else str(original(registered))

    _generator_helpers._fqname = name_of


def _serve(connection: socket.socket) -> None:
    children: dict[int, tuple[int, int]] = {}
    try:
        _serve_requests(connection, children)
    except (BrokenPipeError, ConnectionResetError):
        pass  # the client is gone, as when the socket closes
    finally:
        for _, pid in children.values():
            _kill(pid)


def _serve_requests(connection: socket.socket, children: dict[int, tuple[int, int]]) -> None:
    poller = select.poll()
    poller.register(connection, select.POLLIN)
    pending = b""
    while True:
        for ready, _ in poller.poll():
            if ready != connection.fileno():
                _reap(connection, poller, ready, *children.pop(ready))
                continue
            data = connection.recv(65536)
            if not data:
                return
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                request = json.loads(line)
                pid = _start(connection, request)
                pid_fd = os.pidfd_open(pid)
                children[pid_fd] = (request["id"], pid)
                poller.register(pid_fd, select.POLLIN)
                # Before the end can be sent, so that the client can kill what it started.
                _send(connection, {"event": "started", "id": request["id"], "pid": pid})


def _start(connection: socket.socket, request: dict[str, Any]) -> int:
    pid = os.fork()
    if pid == 0:
        connection.close()
        _run(request)
    # Here, too, before the client knows the pid: it kills the group, which the child may not have made yet.
    with contextlib.suppress(ProcessLookupError):
        os.setpgid(pid, pid)
    return pid


def _run(request: dict[str, Any]) -> NoReturn:
    exit_code = 1
    try:
        os.setpgid(0, 0)
        log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        if request["cores"] is not None:
            os.sched_setaffinity(0, request["cores"])
        memory_bytes, cpu_s = request["memory_bytes"], request["cpu_s"]
        resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        import halide

        sys.argv[1:] = request["arguments"]
        halide.main()
        exit_code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_code)


def _reap(connection: socket.socket, poller: select.poll, pid_fd: int, request_id: int, pid: int) -> None:
    poller.unregister(pid_fd)
    os.close(pid_fd)
    _, status, usage = os.wait4(pid, 0)
    _kill(pid)
    answer = {
        "event": "ended",
        "id": request_id,
        "exit_code": os.waitstatus_to_exitcode(status),
        "peak_memory_bytes": usage.ru_maxrss * 1024,
    }
    _send(connection, answer)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _send(connection: socket.socket, message: dict[str, Any]) -> None:
    connection.sendall(json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    main()
