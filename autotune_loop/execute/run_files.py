"""The files of a run on one worker, named by their content."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from halide_autotune.autotune_loop.execute.messages import FilePart
from halide_autotune.autotune_loop.execute.tasks.task import FileKey
from halide_autotune.devices.transport import check_name
from halide_autotune.targets.errors import FarmError, os_error_as
from halide_autotune.targets.process.content_cache import file_sha256


class NotYetHereError(Exception):
    """A task needs what has not been sent to its worker; the executor sends it, and the task again.

    Attributes:
        key: the file; None for the run itself.
    """

    def __init__(self, key: FileKey | None) -> None:
        super().__init__("the run" if key is None else key.name)
        self.key = key


class RunFiles:
    """Where the files of a run are on this machine; used by all threads of a worker.

    Args:
        folder: for what is received; whoever made it removes it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._paths: dict[str, Path] = {}
        self._lock = threading.Lock()

    def path(self, key: FileKey) -> Path:
        """Return where a file is.

        Raises:
            NotYetHereError: it has not come yet.
        """
        path = self._paths.get(key.sha256)
        if path is None:
            raise NotYetHereError(key)
        return path

    def drop(self, sha256: str) -> None:
        """Delete a file that is not needed any more."""
        path = self._paths.pop(sha256, None)
        if path is not None:
            path.unlink(missing_ok=True)

    def receive(self, part: FilePart) -> None:
        """Write the next piece of a file; with the last one it is there, provided that its content is right.

        Raises:
            FarmError: the content is not what its name says, or cannot be written.
        """
        folder = self._folder / part.key.sha256
        path = folder / check_name(part.key.name)
        half = folder / ".part"
        with self._lock, os_error_as(FarmError, f"Cannot write {path}"):
            folder.mkdir(parents=True, exist_ok=True)
            try:
                with half.open("r+b" if part.offset else "wb") as file:
                    file.seek(part.offset)
                    file.write(part.content)
            except OSError:
                half.unlink(missing_ok=True)
                raise
            if part.offset + len(part.content) < part.size_bytes:
                return
            if file_sha256(half) != part.key.sha256:
                half.unlink()
                raise FarmError(f"{part.key.name} was damaged on its way to this worker.")
            half.chmod(0o755 if part.executable else 0o644)
            os.replace(half, path)
            self._paths[part.key.sha256] = path
