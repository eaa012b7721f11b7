"""A farm on the loopback, of real processes: a scheduler and workers, with certificates of their own."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from halide_autotune.autotune_loop.farm import versions
from halide_autotune.autotune_loop.farm.address import FarmAddress
from halide_autotune.autotune_loop.farm.certificates.authority import make_certificates
from halide_autotune.sdk.settings import Settings
from tests.kept_port import KeptPort

_PATIENCE_S = 240.0
# All processes of a farm say that they are of the code that the tests began with, even if a file is edited meanwhile.
_SAME_CODE = """
import sys
from halide_autotune.autotune_loop.farm import versions
code_sha256, tests = sys.argv.pop(1), sys.argv.pop(1)
versions._code_sha256 = lambda: code_sha256
if tests:
    sys.path.insert(0, tests)
    import tests.plain_tasks
from halide_autotune.sdk.main import main
sys.exit(main(sys.argv[1:]))
"""


def sdk_program(tests: str = "") -> tuple[str, ...]:
    """Python's arguments for `sdk` as a process of a farm.

    Args:
        tests: the folder with these tests, for a process that carries out tasks for tests, too.
    """
    return ("-c", _SAME_CODE, versions._code_sha256(), tests)


class FarmProcess:
    """`sdk farm scheduler` or `sdk farm worker`.

    Attributes:
        lines: of its log, as far as it was waited for.
    """

    def __init__(self, arguments: Sequence[str], settings: Settings) -> None:
        environment = {
            **settings.environment,
            "SDK_CACHE_DIR": str(settings.cache_folder),
            "SDK_CONFIG_DIR": str(settings.config_folder),
            "SDK_PROFILE_DIR": str(settings.profile_folder),
        }
        self._process = subprocess.Popen(
            [sys.executable, *sdk_program(str(Path(__file__).parents[1])), "farm", *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.lines: list[str] = []
        self._coming: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._coming.put(line.rstrip())
        self._coming.put(None)

    def wait_for(self, text: str) -> str:
        """The next line of its log with this text in it."""
        while True:
            line = self._coming.get(timeout=_PATIENCE_S)
            assert line is not None, f"it ended before it said {text!r}; it said: {self.lines}"
            self.lines.append(line)
            if text in line:
                return line

    def freeze(self) -> None:
        """It does nothing any more, and its connections stay, as on a machine that hangs."""
        os.killpg(self._process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        os.killpg(self._process.pid, signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL: it says goodbye to nobody."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def end(self) -> int:
        """SIGTERM, and wait for the end; returns the exit code."""
        self._process.terminate()
        try:
            return self._process.wait(_PATIENCE_S)
        finally:
            self.kill()


class LoopbackFarm:
    """A scheduler, and workers that are started when they are asked for.

    Attributes:
        address: with a user's certificate.
        history: the file of what its runs have timed.
        workers: by their names.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._folder = folder
        self._settings = settings
        make_certificates(folder / "farm", ["127.0.0.1,localhost"], ["tester"])
        self.host_folder = folder / "farm" / "hosts" / "127.0.0.1"
        files = folder / "farm" / "users" / "tester"
        self._port = KeptPort()
        self.url = f"tls://127.0.0.1:{self._port.number}"
        self.user_folder = files
        self.address = FarmAddress(self.url, files)
        self.history = folder / "history.sqlite3"
        self.workers: dict[str, FarmProcess] = {}
        self.start_scheduler()

    def start_scheduler(self, *options: str) -> None:
        """Start it, again after it was killed."""
        listen = ["scheduler", "--listen", self.url, "--farm-certificates", str(self.host_folder)]
        self.scheduler = FarmProcess([*listen, "--history", str(self.history), *options], self._settings)
        self.scheduler.wait_for("is ready")

    def start_worker(self, name: str, settings: Settings, inventory: Path | None = None, build_slots: int = 0) -> None:
        """Start a worker, and wait until it has joined; a second one of the name takes the first one's place.

        Args:
            name: that no other file's farm has: they share this machine at the same time.
        """
        arguments = ["worker", "--name", name, "--build-slots", str(build_slots), "--scheduler", self.url]
        arguments += ["--inventory", str(inventory)] if inventory is not None else ["--no-devices"]
        arguments += ["--farm-certificates", str(self.host_folder)]
        # Each host has a cache folder of its own, but what is compiled is shared.
        config = replace(settings, config_folder=settings.config_folder / name)
        self.workers[name] = FarmProcess(arguments, config)
        self.workers[name].wait_for("is ready")

    def close(self) -> None:
        """End everything."""
        for worker in self.workers.values():
            worker.kill()
        self.scheduler.kill()


@contextlib.contextmanager
def loopback_farm(folder: Path, settings: Settings) -> Iterator[LoopbackFarm]:
    """A farm without workers at first."""
    farm = LoopbackFarm(folder, settings)
    try:
        yield farm
    finally:
        farm.close()
