"""A shared object that is loaded into a generator's process before Halide."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from halide_autotune.targets.errors import ToolchainError

# What the dynamic loader splits LD_PRELOAD at.
_PARTS = re.compile(r"[\s:]")


@dataclass(frozen=True)
class Preload:
    """What is loaded.

    Attributes:
        library: its functions take the place of Halide's.
        variables: of the process's environment, for the library.
    """

    library: Path
    variables: Mapping[str, str] = field(default_factory=dict)

    def environment(self, environment: Mapping[str, str], *needed: Path) -> dict[str, str]:
        """Return the environment of the process.

        Args:
            needed: libraries that it uses, where the program itself is not linked with them.

        Raises:
            ToolchainError: the loader would take a path for several.
        """
        libraries = [str(library) for library in (self.library, *needed)]
        for library in libraries:
            if _PARTS.search(library):
                raise ToolchainError(
                    f"{library} cannot be loaded into a generator: its path has white space or a colon.",
                    next_step="Set SDK_CACHE_DIR to a folder without, and have the Python environment in one.",
                )
        return {**environment, **self.variables, "LD_PRELOAD": ":".join(libraries)}
