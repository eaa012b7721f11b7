"""For tests: a device link to this very machine, without a network: a folder, and programs started in it."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from halide_autotune.devices.device_link import join_words
from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind

_TICK_S = 0.2
Damage = Callable[[bytes], bytes]


def lost(kind: TroubleKind = TroubleKind.LOST) -> DeviceTrouble:
    """What a link that fails raises."""
    return DeviceTrouble(kind, "The cable is out.")


class LocalLink:
    """Files and programs below `home`, as an SSH session would have them.

    Args:
        launcher: an emulator's command line, put before every program of the device.
        machine: what `uname -m` says; None for the truth.
    """

    def __init__(self, home: Path, launcher: Sequence[str] = (), machine: str | None = None) -> None:
        self.home = home
        self.streams: list[list[str]] = []
        """Every command line that was started."""
        self.puts: list[str] = []
        """Every path that was written to."""
        self.damage_put: list[Damage] = []
        """What is done to the content of the next files; used up."""
        self.damage_get: list[Damage] = []
        self.fail_put: list[DeviceTrouble] = []
        """Raised in place of the next puts; used up."""
        self.damage_stream: Damage | None = None
        self.refuse: list[DeviceTrouble] = []
        """Raised by the next connects; used up."""
        self.connects = 0
        self.child: subprocess.Popen[bytes] | None = None
        self._launcher = tuple(launcher)
        self._machine = machine

    @property
    def commands(self) -> list[str]:
        """What the agent was asked for."""
        return [words[1] for words in self.streams]

    def connect(self) -> None:
        self.connects += 1
        if self.refuse:
            raise self.refuse.pop(0)
        self.home.mkdir(parents=True, exist_ok=True)

    def put(self, source: Path, path: str) -> None:
        join_words([path])
        if self.fail_put:
            raise self.fail_put.pop(0)
        self.puts.append(path)
        target = self.home / path
        target.parent.mkdir(parents=True, exist_ok=True)
        content = source.read_bytes()
        if self.damage_put:
            content = self.damage_put.pop(0)(content)
        try:
            target.write_bytes(content)
            target.chmod(0o700)
        except OSError as error:
            kind = TroubleKind.FULL if error.errno in (28, 122) else TroubleKind.BROKEN
            raise DeviceTrouble(kind, f"{target} cannot be written: {error.strerror}.") from error

    def get(self, path: str, destination: Path) -> None:
        join_words([path])
        content = (self.home / path).read_bytes()
        if self.damage_get:
            content = self.damage_get.pop(0)(content)
        destination.write_bytes(content)

    def stream(self, words: Sequence[str]) -> Iterator[bytes]:
        join_words(words)
        self.streams.append(list(words))
        if list(words) == ["uname", "-m"] and self._machine is not None:
            yield f"{self._machine}\n".encode()
            return
        program = words[0] if "/" not in words[0] else str(self.home / words[0])
        if not (shutil.which(program) or os.access(program, os.X_OK)):
            yield f"sh: 1: {words[0]}: not found\r\n".encode()
            return
        launcher = self._launcher if "/" in words[0] else ()
        try:
            child = subprocess.Popen(
                [*launcher, program, *words[1:]],
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except OSError as error:
            yield f"sh: 1: {words[0]}: {error.strerror}\n".encode()
            return
        self.child = child
        yield from self._read(child)

    def _read(self, child: subprocess.Popen[bytes]) -> Iterator[bytes]:
        assert child.stdout is not None
        try:
            while True:
                ready, _, _ = select.select([child.stdout], [], [], _TICK_S)
                data = os.read(child.stdout.fileno(), 65536) if ready else b""
                if ready and not data:
                    return
                yield self.damage_stream(data) if self.damage_stream and data else data
        finally:
            # Hanging up: the program's own output is gone, which is what a closed connection comes to.
            child.stdout.close()
            try:
                child.wait(120)
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGKILL)
                child.wait()

    def close(self) -> None:
        pass
