"""The generators that come with the SDK, in this process: a name can be registered once."""

from __future__ import annotations

import functools
import importlib
import sys
from pathlib import Path
from types import ModuleType

from halide_autotune.autotune_loop.network import generators


@functools.cache
def generator_file(name: str) -> ModuleType:
    """A file of generators as Halide's process runs it, with its folder's modules to import."""
    sys.path.insert(0, str(Path(generators.__file__).parent))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)
