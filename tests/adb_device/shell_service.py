"""The services that run a command: `shell:`, `shell,v2…:` and `exec:`."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.adb_device.device_files import DeviceFiles
from tests.adb_device.device_options import DeviceOptions
from tests.adb_device.device_stream import DeviceStream

_STDIN, _STDOUT, _STDERR, _EXIT, _CLOSE_STDIN = range(5)
_HEAD = struct.Struct("<BI")
_PIECE_BYTES = 64 * 1024
_LOOK_MS = 20


@dataclass
class _Program:
    """A started process and this side's ends of what it reads and writes."""

    process: subprocess.Popen[bytes]
    input_fd: int
    outputs: dict[int, int]  # file descriptor -> shell v2's number for it
    owned_fds: set[int] = field(default_factory=set)

    def close(self) -> None:
        """Close this side's ends: on a terminal that is what SIGHUP comes from."""
        for fd in self.owned_fds:
            os.close(fd)
        self.owned_fds.clear()

    def close_input(self) -> None:
        if self.input_fd not in self.outputs and self.input_fd in self.owned_fds:
            self.owned_fds.remove(self.input_fd)
            os.close(self.input_fd)


def run_shell(
    stream: DeviceStream, service: str, files: DeviceFiles, environment: Mapping[str, str], options: DeviceOptions
) -> None:
    """Serve one command until it has ended, or the client has hung up.

    As in adbd, hanging up sends SIGHUP to a terminal's programs (the kernel does) and to a shell of version 2; any
    other only finds that nobody reads it any more.
    """
    kind, _, command = service.partition(":")
    words = kind.split(",")
    with_exit_code = "v2" in words
    arguments = ["sh", "-c", files.rewrite(command, options.launcher)] if command else ["sh"]
    terminal = _wants_terminal(words, command, options)
    program = _start(arguments, files, environment, terminal, with_exit_code and not terminal)
    feeder = threading.Thread(target=_feed, args=(stream, program, with_exit_code), name="adb-device-input")
    feeder.start()
    try:
        _forward(stream, program, with_exit_code)
        if stream.closed and with_exit_code:
            program.process.send_signal(signal.SIGHUP)
        elif with_exit_code:
            code = program.process.wait()
            stream.write(_HEAD.pack(_EXIT, 1) + bytes([code if code >= 0 else 128 - code]))
    except ConnectionError:
        pass
    finally:
        stream.hang_up()
        feeder.join()
        program.close()
        program.process.wait()


def _wants_terminal(words: list[str], command: str, options: DeviceOptions) -> bool:
    if "pty" in words or "raw" in words or words[0] == "exec":
        return "pty" in words
    return options.terminal or not command


def _start(
    arguments: list[str], files: DeviceFiles, environment: Mapping[str, str], terminal: bool, separate_errors: bool
) -> _Program:
    if terminal:
        ours, theirs = os.openpty()
        # setsid makes the terminal the program's own, which is what hanging up works through.
        arguments = ["setsid", "--ctty", *arguments]
        ends = (theirs, theirs, theirs)
        program_fds = (ours, {ours: _STDOUT}, {ours})
    elif separate_errors:
        (input_r, input_w), (output_r, output_w), (error_r, error_w) = os.pipe(), os.pipe(), os.pipe()
        ends = (input_r, output_w, error_w)
        program_fds = (input_w, {output_r: _STDOUT, error_r: _STDERR}, {input_w, output_r, error_r})
    else:
        # As adbd does: one socket for all, so that a program sees POLLHUP when nobody listens any more.
        ours_socket, theirs_socket = socket.socketpair()
        ours, theirs = ours_socket.detach(), theirs_socket.detach()
        ends = (theirs, theirs, theirs)
        program_fds = (ours, {ours: _STDOUT}, {ours})
    try:
        process = subprocess.Popen(
            arguments,
            stdin=ends[0],
            stdout=ends[1],
            stderr=ends[2],
            cwd=files.root,
            env=dict(environment),
            start_new_session=not terminal,
        )
    except BaseException:
        for fd in program_fds[2]:
            os.close(fd)
        raise
    finally:
        for fd in set(ends):
            os.close(fd)
    for fd in program_fds[2]:
        os.set_blocking(fd, False)
    return _Program(process, *program_fds)


def _forward(stream: DeviceStream, program: _Program, with_heads: bool) -> None:
    """What the program prints to the client, until all its ends are closed or the client is gone."""
    poller = select.poll()
    for fd in program.outputs:
        poller.register(fd, select.POLLIN)
    left = set(program.outputs)
    while left and not stream.closed:
        for fd, _ in poller.poll(_LOOK_MS):
            try:
                data = os.read(fd, _PIECE_BYTES)
            except BlockingIOError:
                continue
            except OSError:
                data = b""  # a terminal whose last user is gone
            if not data:
                poller.unregister(fd)
                left.remove(fd)
                continue
            stream.write(_HEAD.pack(program.outputs[fd], len(data)) + data if with_heads else data)


def _feed(stream: DeviceStream, program: _Program, with_heads: bool) -> None:
    """What the client sends to the program's standard input."""
    with contextlib.suppress(ConnectionError, OSError):
        while True:
            if not with_heads:
                _write_all(program.input_fd, stream.read_some(), stream)
                continue
            kind, size_bytes = _HEAD.unpack(stream.read(_HEAD.size))
            data = stream.read(size_bytes)
            if kind == _STDIN:
                _write_all(program.input_fd, data, stream)
            elif kind == _CLOSE_STDIN:
                program.close_input()
                return


def _write_all(fd: int, data: bytes, stream: DeviceStream) -> None:
    poller = select.poll()
    poller.register(fd, select.POLLOUT)
    while data and not stream.closed:
        if poller.poll(_LOOK_MS):
            with contextlib.suppress(BlockingIOError):
                data = data[os.write(fd, data) :]
