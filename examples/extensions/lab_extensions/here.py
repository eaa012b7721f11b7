"""A transport: a folder of this machine as a device, `here:///tmp/board`.

With a prefix such as `docker exec NAME` before each command, and `docker cp` for the files, it would be a container.
"""

import os
import select
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from sdk import DeviceTrouble, TroubleKind

_TICK_S = 0.2


class Here:
    def __init__(self, name: str, url: str) -> None:
        self._name = name
        self._home = Path(url.partition("://")[2])

    def connect(self) -> None:
        if not self._home.is_dir():
            raise DeviceTrouble(
                TroubleKind.UNREACHABLE, f"{self._name}: there is no folder {self._home}.", next_step="Make it."
            )

    def put(self, source: Path, path: str) -> None:
        target = self._home / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        target.chmod(0o700)

    def get(self, path: str, destination: Path) -> None:
        try:
            shutil.copyfile(self._home / path, destination)
        except FileNotFoundError as error:
            raise DeviceTrouble(TroubleKind.BROKEN, f"{self._name} has no file {path}.") from error

    def stream(self, words: Sequence[str]) -> Iterator[bytes]:
        program = str(self._home / words[0]) if "/" in words[0] else words[0]
        try:
            child = subprocess.Popen(
                [program, *words[1:]],
                cwd=self._home,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except OSError as error:
            yield f"{words[0]}: {error.strerror}\n".encode()  # as a shell on the device says it
            return
        try:
            while True:
                ready, _, _ = select.select([child.stdout], [], [], _TICK_S)
                block = os.read(child.stdout.fileno(), 65536) if ready else b""
                if ready and not block:
                    return
                yield block
        finally:
            child.stdout.close()  # a program that still runs has nobody to tell
            child.wait()

    def close(self) -> None:
        return None
