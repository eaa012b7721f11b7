"""Saves the details of an unexpected error, so that the terminal shows one line."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shlex
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from halide_autotune.sdk.settings import read_settings
from halide_autotune.targets.errors import SdkError

# All of a URL may be a secret, as of a webhook, but its host.
_URL = re.compile(r"://(?:[^/?#\s]*@)?([^/?#\s]*)\S*")


def save_crash_report(error: BaseException, arguments: Sequence[str]) -> Path | str:
    """Write the traceback, the command line and the versions to a new file and return its path.

    The file is in `crashes/` of the cache folder, or in the temporary folder if that fails.
    """
    text = "\n".join(
        [
            f"sdk {shlex.join(_without_secrets(argument) for argument in arguments)}",
            f"Python {sys.version}",
            platform.platform(),
            "".join(traceback.format_exception(error)),
        ]
    )
    name = f"crash-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    folders = [Path(tempfile.gettempdir())]
    with contextlib.suppress(SdkError):
        folders.insert(0, read_settings().cache_folder / "crashes")
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / name
            path.write_text(text, encoding="utf-8", errors="backslashreplace")
        except OSError:
            continue
        return path
    return "no file: neither the cache folder nor the temporary folder is writable"


def _without_secrets(argument: str) -> str:
    return _URL.sub(r"://\1", argument)
