"""Files kept across runs, named by the content they were made from."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from targets.errors import ToolchainError


class ContentCache:
    """A folder of built files, each under a hash of everything it depends on.

    Safe for threads and processes that share the folder: one builds a file while the others wait for it.
    A file is trusted when a seal beside it (written after it) still gives its size and SHA-256; else it is
    built again.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def root(self) -> Path:
        """The folder itself, for tools that keep a cache of their own in it."""
        return self._root

    def path_for(self, key_parts: Sequence[str | bytes], suffix: str) -> Path:
        """Where the file of this key lies, whether it has been built or not.

        Args:
            key_parts: everything the content depends on, in order; text and bytes are told apart.
            suffix: how the name ends, such as '.o'.
        """
        key = _key(key_parts)
        return self._root / key[:2] / f"{key}{suffix}"

    def get_or_build(self, key_parts: Sequence[str | bytes], suffix: str, build: Callable[[Path], None]) -> Path:
        """The file of this key, built first where there is none that can be trusted.

        Args:
            key_parts, suffix: as for `path_for`.
            build: writes the file at the path it is given, in an empty folder of its own that is removed
                afterwards; the file's mode is kept. What it raises passes through, and nothing is left.

        Raises:
            ToolchainError: the cache folder cannot be used, or `build` wrote no file or an empty one.
        """
        path = self.path_for(key_parts, suffix)
        if _is_sealed(path):
            return path
        with self._locked(path.name):
            if not _is_sealed(path):
                self._build(path, build)
        return path

    def _build(self, path: Path, build: Callable[[Path], None]) -> None:
        with _usable(self._root):
            path.parent.mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(prefix=".building-", dir=path.parent))
        try:
            fresh = folder / path.name
            build(fresh)
            if not fresh.is_file() or fresh.stat().st_size == 0:
                raise ToolchainError(f"Building {path.name} ended without an error, yet wrote no file.")
            with _usable(self._root):
                _sync(fresh)
                seal = folder / _seal_path(path).name
                seal.write_text(_seal(fresh))
                _sync(seal)
                os.replace(fresh, path)
                os.replace(seal, _seal_path(path))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        with _usable(self._root):
            locks = self._root / "locks"
            locks.mkdir(parents=True, exist_ok=True)
            # Lock files stay: removing one while another process waits on it would let two builders in.
            descriptor = os.open(locks / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file's content, hexadecimal.

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


@contextmanager
def _usable(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ToolchainError(
            f"The cache folder {root} cannot be written: {error.strerror or error}.",
            next_step="Free some space or choose another cache folder.",
        ) from error
