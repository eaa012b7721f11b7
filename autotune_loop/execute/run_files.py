"""The files of a run at one member, named by their content."""

from __future__ import annotations

import os
import re
import threading
from dataclasses import dataclass
from pathlib import Path

from devices.transport import check_name
from targets.errors import FarmError
from targets.process.content_cache import file_sha256

_ODD = re.compile(r"[^A-Za-z0-9_.+-]", re.ASCII)


@dataclass(frozen=True)
class FileKey:
    """A file that members need, whichever machine it lies on.

    Attributes:
        name: its file name, odd characters replaced.
        sha256: of its content, hexadecimal.
    """

    name: str
    sha256: str


@dataclass(frozen=True)
class FilePart:
    """A piece of a file on its way to a member.

    Attributes:
        offset, size_bytes: where it begins, and of the whole file.
        executable: the file's mode.
    """

    key: FileKey
    offset: int
    size_bytes: int
    executable: bool
    content: bytes


class MissingFileError(Exception):
    """A task needs a file that has not been sent to its member; the engine sends it and asks again."""

    def __init__(self, key: FileKey) -> None:
        super().__init__(key.name)
        self.key = key


def key_of(path: Path) -> FileKey:
    """The key of a local file.

    Raises:
        FarmError: it cannot be read.
    """
    try:
        return FileKey(_ODD.sub("_", path.name).lstrip(".-") or "file", file_sha256(path))
    except OSError as error:
        raise FarmError(f"{path} cannot be read: {error.strerror or error}.") from error


class RunFiles:
    """Where the files of a run lie here; used by all threads of a member.

    Args:
        folder: for what is received; removed by who made the run.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._paths: dict[str, Path] = {}
        self._lock = threading.Lock()

    def adopt(self, key: FileKey, path: Path) -> None:
        """Use a file of this machine as it lies there."""
        self._paths[key.sha256] = path

    def path(self, key: FileKey) -> Path:
        """Where a file lies here.

        Raises:
            MissingFileError: it has not come yet.
        """
        path = self._paths.get(key.sha256)
        if path is None:
            raise MissingFileError(key)
        return path

    def drop(self, sha256: str) -> None:
        """Delete a file that was received, or forget one that was adopted."""
        path = self._paths.pop(sha256, None)
        if path is not None and path.is_relative_to(self._folder):
            path.unlink(missing_ok=True)

    def receive(self, part: FilePart) -> None:
        """Write the next piece of a file; with the last one it is there, provided that its content is right.

        Raises:
            FarmError: the content is not what its name says, or cannot be written.
        """
        folder = self._folder / part.key.sha256
        path = folder / check_name(part.key.name)
        half = folder / ".part"
        with self._lock:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                with half.open("r+b" if part.offset else "wb") as file:
                    file.seek(part.offset)
                    file.write(part.content)
                if part.offset + len(part.content) < part.size_bytes:
                    return
                if file_sha256(half) != part.key.sha256:
                    half.unlink()
                    raise FarmError(f"{part.key.name} was damaged on its way to this member.")
                half.chmod(0o755 if part.executable else 0o644)
                os.replace(half, path)
            except OSError as error:
                raise FarmError(f"{path} cannot be written: {error.strerror or error}.") from error
            self._paths[part.key.sha256] = path
