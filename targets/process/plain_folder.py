"""A folder under a path that Halide's command line takes."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

_PLAIN = re.compile(r"[^\s=,]*")


@contextlib.contextmanager
def plain_folder(folder: Path) -> Iterator[Path]:
    """`folder` itself, or a link to it where its path has white space, '=' or ','.

    Adams2019 reads a parameter up to the first white space and aborts on the rest; the generator's main splits
    its arguments at '=' and lists at ','.
    """
    if _PLAIN.fullmatch(str(folder)):
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="sdk-folder-") as links:
        link = Path(links) / "folder"
        link.symlink_to(folder.absolute(), target_is_directory=True)
        yield link
