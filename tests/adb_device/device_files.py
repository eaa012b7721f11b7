"""An emulated device's file system: a folder of this machine."""

from __future__ import annotations

import errno
import os
import re
import shlex
from pathlib import Path

_TEMPORARY = "/data/local/tmp"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
# The paths where a word starts with one of them: not inside another path.
_OWN_PATH = re.compile(rf"(?<![\w./-])({_TEMPORARY}|{_BOOT_ID})(?![\w.-])")
_ELF_MACHINE_AARCH64 = 183


class DeviceFiles:
    """Below `root` lies what the device has; no process is confined to it.

    Real confinement (a mount namespace, chroot) needs rights that tests do not have. So two paths are rewritten to
    lie below `root`: /data/local/tmp and the kernel's boot id, where a word of a command line starts with them and in
    file transfers. Paths below `root` are taken as they are; relative paths start in `root`, as on a device they
    start in /. File transfers reach nothing else. A program that uses one of the two of its own knowledge sees this
    machine's: tell it the real path, such as `temporary`.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.temporary = self.root / _TEMPORARY[1:]
        self.temporary.mkdir(parents=True)
        self._boot_id_file = self.root / _BOOT_ID[1:]
        self._boot_id_file.parent.mkdir(parents=True)
        self._free_bytes: int | None = None

    def set_boot_id(self, boot_id: str) -> None:
        """What the device's kernel says identifies this boot."""
        self._boot_id_file.write_text(boot_id + "\n")

    def set_free(self, size_bytes: int | None) -> None:
        """How much file transfers may still write; None for any amount."""
        self._free_bytes = size_bytes

    def take_space(self, size_bytes: int) -> int:
        """How many of `size_bytes` bytes still fit; they are taken."""
        if self._free_bytes is None:
            return size_bytes
        taken_bytes = min(size_bytes, self._free_bytes)
        self._free_bytes -= taken_bytes
        return taken_bytes

    def local(self, path: str) -> Path:
        """Where a path of the device lies on this machine.

        Raises:
            OSError: outside of what the device has.
        """
        if path in (_TEMPORARY, _BOOT_ID) or path.startswith(_TEMPORARY + "/"):
            path = f"{self.root}{path}"
        whole = Path(os.path.normpath(self.root / path))
        if whole == Path("/"):
            return self.root
        folder = whole.parent.resolve()
        if whole != self.root and not folder.is_relative_to(self.root):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return whole

    def rewrite(self, command: str, launcher: tuple[str, ...]) -> str:
        """A command line of the device as this machine's shell runs it."""
        rewritten = _OWN_PATH.sub(lambda found: f"{self.root}{found[0]}", command)
        program = rewritten.partition(" ")[0]
        if launcher and _is_aarch64(self.root / program):
            return f"{shlex.join(launcher)} {rewritten}"
        return rewritten


def _is_aarch64(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            start = file.read(20)
    except OSError:
        return False
    return start[:4] == b"\x7fELF" and int.from_bytes(start[18:20], "little") == _ELF_MACHINE_AARCH64
