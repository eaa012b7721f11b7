"""The child that runs a Python generator: `python -m halide_autotune.targets.generator.python_server FILE`.

It imports halide and the user's file once and forks for every request, so that the start of the interpreter and the
imports are paid once. File descriptor 0 is a socket that keeps messages apart; each message is JSON:

    ← {"names": ["blur"], "parameters": {"blur": {"radius": 3}}}  or  {"failure": "…"}
    → {"arguments": ["-g", "blur", …], "variables": {"NAME": "…"},
       "limits": {"time_s": …, "memory_bytes": …, "cores": [0, 1] or null}}

With each request come two files: a socket for the answers about its run, and the run's log.

    ← {"pid": 123}
    ← {"exit_code": 0, "peak_memory_bytes": …}

When the first socket closes, the server ends with its children.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import json
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from halide_autotune.targets.process.limited_process import ProcessLimits, kill_group, limit_process

_TRUE_WORDS = ("true", "1", "yes", "on")
_FALSE_WORDS = ("false", "0", "no", "off", "")
_MODULE_NAME = "sdk_user_generator"
# More than the kernel lets a socket of this kind carry at once.
LONGEST_MESSAGE_BYTES = 2**18
_LONGEST_TRACEBACK = 20_000
_LIBC = ctypes.CDLL(None)
# Of linux/prctl.h.
_PR_SET_PDEATHSIG = 1


class _Child(NamedTuple):
    """A child, and where the client waits for its end."""

    pid: int
    answers: socket.socket


def main() -> None:
    """Import the file, send the names of its generators, and serve requests until the socket closes."""
    connection = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        names = _load(Path(sys.argv[1]), [Path(p) for p in sys.argv[2:]])
    except BaseException as error:
        _send(connection, {"failure": _user_traceback(error, sys.argv[0])[-_LONGEST_TRACEBACK:]})
        return
    _send(connection, {"names": names, "parameters": {name: _parameters(name) for name in names}})
    _serve(connection)


def _user_traceback(error: BaseException, file: str) -> str:
    """Format the error with the frames from the user's file on; those before are of the import."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename != file:
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames, chain=False))


def _load(file: Path, plugins: list[Path]) -> list[str]:
    sys.path.insert(0, str(file.parent))
    # As `python -m` has it, but last: what the SDK imports from now on is not what lies there.
    sys.path.append(os.getcwd())
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


def _parameters(name: str) -> dict[str, object]:
    """The generator parameters of a generator, with their defaults as JSON has them; a type is given as a text."""
    import halide

    generator = halide._generator_helpers._python_generators[name]
    found: dict[str, object] = {}
    for each in reversed(generator.__mro__):
        for key, value in vars(each).items():
            if isinstance(value, halide.GeneratorParam):
                default = value._value
                found[key] = default if isinstance(default, bool | int | float | str) else str(default)
        found.update(vars(each).get("_halide_alias_generator_params", {}))
    return found


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
    runs: dict[int, _Child] = {}
    poller = select.poll()
    poller.register(connection, select.POLLIN)
    try:
        while True:
            for ready, _ in poller.poll():
                if ready != connection.fileno():
                    poller.unregister(ready)
                    _reap(ready, runs.pop(ready))
                    continue
                message, files, _, _ = socket.recv_fds(connection, LONGEST_MESSAGE_BYTES, 2)
                if not message:
                    return
                run = _start(json.loads(message), files, [connection, *(run.answers for run in runs.values())])
                pid_fd = os.pidfd_open(run.pid)
                runs[pid_fd] = run
                poller.register(pid_fd, select.POLLIN)
                # Before the end can be sent, so that the client can kill what it started.
                _send(run.answers, {"pid": run.pid})
    except ConnectionResetError:
        pass  # the client is gone, as when the socket closes
    finally:
        for run in runs.values():
            kill_group(run.pid)


def _start(request: dict[str, Any], files: list[int], of_server: Iterable[socket.socket]) -> _Child:
    answers, log = socket.socket(fileno=files[0]), files[1]
    server = os.getpid()
    pid = os.fork()
    if pid == 0:
        _end_with(server)
        for each in (answers, *of_server):
            each.close()
        _run(request, log)
    os.close(log)
    # Here, too, before the client knows the pid: it kills the group, which the child may not have made yet.
    with contextlib.suppress(ProcessLookupError):
        os.setpgid(pid, pid)
    return _Child(pid, answers)


def _end_with(parent: int) -> None:
    """Have this child killed when its parent dies: until the client knows its pid, nobody else can.

    It may have died already.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _run(request: dict[str, Any], log: int) -> NoReturn:
    exit_code = 1
    try:
        os.setpgid(0, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        limit_process(0, ProcessLimits(**request["limits"]))
        for name, value in request["variables"].items():
            os.putenv(name, value)  # for libraries in C++
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


def _reap(pid_fd: int, run: _Child) -> None:
    os.close(pid_fd)
    _, status, usage = os.wait4(run.pid, 0)
    kill_group(run.pid)
    exit_code = os.waitstatus_to_exitcode(status)
    _send(run.answers, {"exit_code": exit_code, "peak_memory_bytes": usage.ru_maxrss * 1024})
    run.answers.close()


def _send(connection: socket.socket, message: dict[str, Any]) -> None:
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # nobody waits for it
        connection.send(json.dumps(message).encode())


if __name__ == "__main__":
    main()
