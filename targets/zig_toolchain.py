"""A C compiler and linker for any target, from the `ziglang` wheel."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from targets.errors import ToolchainError
from targets.limited_process import run_limited
from targets.process_outcome import ProcessLimits

# The first use of a target builds its C library, which can take minutes on a slow machine.
_LIMITS = ProcessLimits(time_s=900.0, memory_bytes=8 * 2**30)
_ERROR_LINES = 15

# zig cc turns the undefined-behaviour sanitizer on unless the code is optimised.
_COMPILE_FLAGS = ("-std=c11", "-O2", "-g0", "-fno-sanitize=all")
_LINK_FLAGS = ("-O2", "-s")


@dataclass(frozen=True)
class ZigToolchain:
    """`zig cc` for one target.

    Attributes:
        triple: zig's name of the target, such as 'aarch64-linux-gnu.2.28'.
        cache_dir: where zig keeps the C libraries it builds; nothing of it is kept elsewhere.
        python: an interpreter that has `ziglang` installed.
        extra_flags: passed to every compilation and link, such as ('-mcpu=hexagonv67',).
    """

    triple: str
    cache_dir: Path
    python: Path = field(default_factory=lambda: Path(sys.executable))
    extra_flags: tuple[str, ...] = ()

    def version(self) -> str:
        """zig's own version.

        Raises:
            ToolchainError: `ziglang` is not installed in `python`.
        """
        return _zig_version(self.python)

    def fingerprint(self) -> str:
        """Everything of this toolchain that an object depends on, for cache keys.

        Raises:
            ToolchainError: `ziglang` is not installed in `python`.
        """
        return " ".join(("zig", self.version(), self.triple, *_COMPILE_FLAGS, *_LINK_FLAGS, *self.extra_flags))

    def compile_c(
        self, source: Path, object_path: Path, include_dirs: Sequence[Path], flags: Sequence[str] = ()
    ) -> None:
        """Compile one C source into an object file.

        Raises:
            ToolchainError: zig is missing, or the source does not compile; its last lines are given.
        """
        includes = [f"-I{folder}" for folder in include_dirs]
        arguments = [*_COMPILE_FLAGS, *flags, *includes, "-c", str(source), "-o", str(object_path)]
        self._run(arguments, f"{source.name} does not compile for {self.triple}")

    def link(self, objects: Sequence[Path], output: Path, libraries: Sequence[str] = ("m", "pthread", "dl")) -> None:
        """Link objects and system libraries into an executable.

        Raises:
            ToolchainError: zig is missing, or the link fails; the linker's last lines are given.
        """
        arguments = [*_LINK_FLAGS, *(str(path) for path in objects), "-o", str(output)]
        arguments += [f"-l{library}" for library in libraries]
        self._run(arguments, f"{output.name} does not link for {self.triple}")

    def _run(self, arguments: Sequence[str], failure: str) -> None:
        version = self.version()
        command = [
            str(self.python),
            "-m",
            "ziglang",
            "cc",
            "-target",
            self.triple,
            *self.extra_flags,
            *arguments,
        ]
        try:
            self.cache_dir.mkdir(parents=True, exist_ok=True)
            outcome = run_limited(command, _LIMITS, environment=_environment(self.cache_dir))
        except OSError as error:
            raise ToolchainError(f"{failure}: {error}.") from error
        if not outcome.succeeded:
            lines = "\n".join(outcome.log.splitlines()[-_ERROR_LINES:])
            raise ToolchainError(f"{failure} (zig {version} {outcome.describe()}):\n{lines}")


def _environment(cache_dir: Path) -> dict[str, str]:
    folder = str(cache_dir)
    return {"ZIG_GLOBAL_CACHE_DIR": folder, "ZIG_LOCAL_CACHE_DIR": folder, "HOME": folder, "LC_ALL": "C"}


@lru_cache(maxsize=8)
def _zig_version(python: Path) -> str:
    next_step = f"Install it with: {python} -m pip install ziglang"
    command = [str(python), "-m", "ziglang", "version"]
    try:
        outcome = run_limited(command, _LIMITS, environment={"LC_ALL": "C"})
    except OSError as error:
        raise ToolchainError(f"{python} cannot be run: {error}.", next_step=next_step) from error
    if outcome.succeeded and outcome.log.strip():
        return outcome.log.strip()
    raise ToolchainError(f"The C toolchain 'ziglang' is not installed in {python}.", next_step=next_step)
