"""A shared object that is loaded into a generator's process before Halide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


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
        """
        return {**environment, **self.variables, "LD_PRELOAD": ":".join(map(str, (self.library, *needed)))}
