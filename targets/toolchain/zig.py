"""A C compiler and linker for any target, from the `ziglang` wheel."""

from __future__ import annotations

import hashlib
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from halide_autotune.targets.errors import ToolchainError
from halide_autotune.targets.process.c_toolchain import CToolchain
from halide_autotune.targets.process.limited_process import ProcessLimits, run_limited
from halide_autotune.targets.process.stop_signal import StopSignal

_VERSION_LIMITS = ProcessLimits(time_s=60.0, memory_bytes=8 * 2**30)
_MUSL_SHIMS = Path(__file__).parent / "musl_shims.c"
_HEXAGON_SHIMS = tuple(
    Path(__file__).parents[1] / "hexagon" / name for name in ("shims.c", "memory_shims.c", "linux_shims.c")
)

# Without optimisation zig cc turns the undefined-behaviour sanitizer on.
_COMPILE_FLAGS = ("-std=c11", "-O2", "-g0", "-fno-sanitize=all")
_LINK_FLAGS = ("-O2", "-s")
_LIBRARIES = ("-lm", "-lpthread", "-ldl")


@dataclass(frozen=True)
class ZigToolchain(CToolchain):
    """`zig cc` for one target, from the wheel in this Python.

    Attributes:
        triple: zig's name of the target, such as 'aarch64-linux-gnu.2.28'.
        cache_dir: the only place where zig keeps the C libraries it builds.
        extra_flags: passed to every compilation and link, such as ('-mcpu=hexagonv67',).
    """

    triple: str
    cache_dir: Path
    extra_flags: tuple[str, ...] = ()
    _name = "zig"

    @property
    def _target(self) -> str:
        return self.triple

    @property
    def shim_sources(self) -> tuple[Path, ...]:
        """For musl, functions of Halide's runtimes that it lacks; for Hexagon also those of a DSP's system."""
        if not self._is_musl:
            return ()
        return (_MUSL_SHIMS, *(_HEXAGON_SHIMS if self.triple.startswith("hexagon-") else ()))

    @property
    def _is_musl(self) -> bool:
        return self.triple.split("-")[-1].startswith("musl")

    @property
    def is_prepared(self) -> bool:
        """Whether the target's C library is built. Zig builds it at the first link, for up to minutes (musl)."""
        return self._mark.exists()

    def prepare(self, stop: StopSignal | None = None) -> None:
        """Build the target's C library if that is not done; return early once `stop` is set."""
        if self.is_prepared:
            return
        failure = f"The C library for {self.triple} cannot be built"
        try:
            self.cache_dir.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".preparing-", dir=self.cache_dir) as folder:
                source = Path(folder).absolute() / "empty.c"
                source.write_text("int main(void) { return 0; }\n")
                files = [*_COMPILE_FLAGS, str(source), "-o", str(source.with_suffix(""))]
                self._run([*self._command(), *self._link_arguments(files, source)], failure, stop)
            if stop is None or not stop.is_set():
                self._mark.touch()
        except OSError as error:
            raise ToolchainError(f"{failure}: {error}.") from error

    @property
    def _mark(self) -> Path:
        return self.cache_dir / f"prepared-{hashlib.sha256(self.fingerprint().encode()).hexdigest()[:16]}"

    def version(self) -> str:
        """Return zig's version."""
        return _zig_version(sys.executable)

    def fingerprint(self) -> str:
        """Return everything of this toolchain that an object depends on, for cache keys."""
        return " ".join(("zig", self.version(), self.triple, *_COMPILE_FLAGS, *_LINK_FLAGS, *self.extra_flags))

    def describe(self) -> str:
        """Return a phrase such as 'zig 0.15.1 for aarch64-linux-musl, static'."""
        return f"zig {self.version()} for {self.triple}" + (", static" if self._is_musl else "")

    def _command(self) -> list[str]:
        return [*_zig(), "cc", "-target", self.triple, *self.extra_flags]

    def _cpp_command(self) -> list[str]:
        return [*_zig(), "c++", "-target", self.triple, *self.extra_flags]

    def _compile_flags(self) -> Sequence[str]:
        return _COMPILE_FLAGS

    def _link_arguments(self, files: Sequence[str], output: Path) -> Sequence[str]:
        return [*_LINK_FLAGS, *files, *_LIBRARIES]

    def _environment(self) -> Mapping[str, str]:
        folder = str(self.cache_dir.absolute())
        return {"ZIG_GLOBAL_CACHE_DIR": folder, "ZIG_LOCAL_CACHE_DIR": folder, "HOME": folder, "LC_ALL": "C"}


def _zig() -> list[str]:
    return [sys.executable, "-P", "-m", "ziglang"]  # -P ignores a ziglang.py in the working directory


@lru_cache(maxsize=8)
def _zig_version(python: str) -> str:
    next_step = f"Install it with: {python} -m pip install ziglang"
    command = [*_zig(), "version"]
    try:
        outcome = run_limited(command, _VERSION_LIMITS, environment={"LC_ALL": "C"})
    except OSError as error:
        raise ToolchainError(f"{python} cannot be run: {error}.", next_step=next_step) from error
    if outcome.succeeded and outcome.log.strip():
        return outcome.log.strip()
    raise ToolchainError(f"The C toolchain 'ziglang' is not installed in {python}.", next_step=next_step)
