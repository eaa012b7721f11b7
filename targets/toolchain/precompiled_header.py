"""Halide's header, parsed once for all that the C++ compiler makes: half of what compiling a generator takes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.process.compiler_run import compiler_facts
from halide_autotune.targets.process.content_cache import ContentCache

_HEADER = "Halide.h"


def precompiled_header(
    halide: HalideInstall,
    cache: ContentCache,
    compiler: str,
    flags: Sequence[str],
    run: Callable[[Sequence[str]], None],
) -> Path | None:
    """The folder to be searched before that of Halide's headers; None if there is none to be had.

    GCC takes what is in it for a source that includes Halide.h before anything else and has these flags. It passes by
    what does not fit, and reads the header itself (GCC's manual, "Using Precompiled Headers").

    Args:
        run: runs a command; raises `GeneratorError` if it fails.

    Raises:
        ToolchainError: the cache folder cannot be written, or the compiler was stopped.
    """
    if "clang" in Path(compiler).resolve().name:  # takes none by itself
        return None
    header = halide.include_dir / _HEADER
    key = ["precompiled", halide.version, str(halide.root), *compiler_facts(compiler), *flags]
    try:
        path = cache.get_or_build(
            key, ".gch", lambda output: run([compiler, "-x", "c++-header", *flags, str(header), "-o", str(output)])
        )
        folder = path.with_suffix("")
        folder.mkdir(exist_ok=True)
        # GCC also looks for the header itself, where another one includes it again.
        for name, target in ((f"{_HEADER}.gch", Path("..") / path.name), (_HEADER, header)):
            with contextlib.suppress(FileExistsError):
                (folder / name).symlink_to(target)
    except (GeneratorError, OSError):
        return None
    return folder
