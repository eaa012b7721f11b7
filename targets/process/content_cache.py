"""Keep built files across runs, named by a hash of what they were built from."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from halide_autotune.targets.errors import ToolchainError, os_error_as
from halide_autotune.targets.process.file_lock import file_lock


class ContentCache:
    """A folder of built files, each named by a hash of everything it depends on.

    Threads and processes may share the folder: one builds a file while the others wait for it. A file is used only if
    the seal beside it, written last, has its size and SHA-256; otherwise it is built again.

    Attributes:
        root: the folder; tools that keep their own cache have one in it.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def get_or_build(self, key_parts: Sequence[str | bytes], suffix: str, build: Callable[[Path], None]) -> Path:
        """Return the file of this key; build it if it is missing or damaged.

        Args:
            key_parts: everything the content depends on, in order; text and bytes differ.
            suffix: the end of the name, such as '.o'.
            build: writes the file at the path it is given, in an empty temporary folder; the file's mode is kept.
                Its exceptions pass through, and no file is kept.

        Raises:
            ToolchainError: the cache folder cannot be written, or `build` wrote no file or an empty one.
        """
        key = _key(key_parts)
        path = self.root / key[:2] / f"{key}{suffix}"
        if _is_sealed(path):
            return path
        with self._locked(path.name):
            if not _is_sealed(path):
                self._build(path, build)
        return path

    def _build(self, path: Path, build: Callable[[Path], None]) -> None:
        folder = path.with_name(f".building-{path.name}")
        with self.writing():
            # One that is there is a killed process's, since this one has the lock.
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        try:
            fresh = folder / path.name
            build(fresh)
            if not fresh.is_file() or fresh.stat().st_size == 0:
                raise ToolchainError(f"Building {path.name} succeeded but wrote no file.")
            with self.writing():
                _sync(fresh)
                seal = fresh.with_name(_seal_path(path).name)
                seal.write_text(_seal(fresh))
                _sync(seal)
                os.replace(fresh, path)
                os.replace(seal, _seal_path(path))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Wrap what cannot be written into the folder.

        Raises:
            ToolchainError: that failed.
        """
        next_step = "Free some disk space, or set SDK_CACHE_DIR to a folder that can be written."
        with os_error_as(ToolchainError, f"The cache folder {self.root} cannot be written", next_step=next_step):
            yield

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        with ExitStack() as held:
            with self.writing():
                locks = self.root / "locks"
                locks.mkdir(parents=True, exist_ok=True)
                # Lock files stay: if one were removed while a process waits for it, two could build.
                held.enter_context(file_lock(locks / name))
            yield


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal.

    Raises:
        OSError: the file cannot be read.
    """
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _key(parts: Sequence[str | bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        kind, content = (b"t", part.encode()) if isinstance(part, str) else (b"b", part)
        digest.update(kind + len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()


def _seal_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.seal")


def _seal(path: Path) -> str:
    return f"{path.stat().st_size} {file_sha256(path)}\n"


def _is_sealed(path: Path) -> bool:
    try:
        written = _seal_path(path).read_text()
        return written.partition(" ")[0] == str(path.stat().st_size) and written == _seal(path)
    except (OSError, UnicodeDecodeError):
        return False


def _sync(path: Path) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())
