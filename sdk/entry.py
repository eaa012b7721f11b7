"""Where the command `sdk` begins: an interrupt while its modules are loaded is told like any other."""

from __future__ import annotations

import sys

_INTERRUPTED = 130


def main() -> int:
    """Run this process's command line and return its exit code."""
    try:
        from halide_autotune.sdk.main import main as run
    except KeyboardInterrupt:
        sys.stderr.write("sdk: interrupted.\n")
        return _INTERRUPTED
    return run()
