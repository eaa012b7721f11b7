"""A C compiler and linker for any target, from the `ziglang` wheel."""

from __future__ import annotations

import hashlib
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from targets.errors import ToolchainError
from targets.process.compiler_run import compile_arguments, link_arguments, run_compiler
from targets.process.limited_process import ProcessLimits, run_limited
from targets.process.stop_signal import StopSignal

_VERSION_LIMITS = ProcessLimits(time_s=60.0, memory_bytes=8 * 2**30)
_MUSL_SHIMS = Path(__file__).parent / "musl_shims.c"
_HEXAGON_SHIMS = tuple(
    Path(__file__).parents[1] / "hexagon" / name for name in ("shims.c", "memory_shims.c", "linux_shims.c")
)

# Without optimisation zig cc turns the undefined-behaviour sanitizer on.
_COMPILE_FLAGS = ("-std=c11", "-O2", "-g0", "-fno-sanitize=all")
_LINK_FLAGS = ("-O2", "-s")
_LIBRARIES = ("m", "pthread", "dl")


@dataclass(frozen=True)
class ZigToolchain:
    """`zig cc` for one target; its methods raise as those of `CToolchain`.

    Attributes:
        triple: zig's name of the target, such as 'aarch64-linux-gnu.2.28'.
        cache_dir: the only place where zig keeps the C libraries it builds.
        python: an interpreter that has `ziglang` installed.
        extra_flags: passed to every compilation and link, such as ('-mcpu=hexagonv67',).
    """

    triple: str
    cache_dir: Path
    python: Path = field(default_factory=lambda: Path(sys.executable))
    extra_flags: tuple[str, ...] = ()

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
                arguments = [*_COMPILE_FLAGS, *_LINK_FLAGS, str(source), "-o", str(source.with_suffix(""))]
                self._run([*arguments, *_library_flags(_LIBRARIES)], failure, stop)
            if stop is None or not stop.is_set():
                self._mark.touch()
        except OSError as error:
            raise ToolchainError(f"{failure}: {error}.") from error

    @property
    def _mark(self) -> Path:
        return self.cache_dir / f"prepared-{hashlib.sha256(self.fingerprint().encode()).hexdigest()[:16]}"

    def version(self) -> str:
        """Return zig's version."""
        return _zig_version(self.python)

    def fingerprint(self) -> str:
        """Return everything of this toolchain that an object depends on, for cache keys."""
        return " ".join(("zig", self.version(), self.triple, *_COMPILE_FLAGS, *_LINK_FLAGS, *self.extra_flags))

    def describe(self) -> str:
        """Return a phrase such as 'zig 0.15.1 for aarch64-linux-musl, static'."""
        return f"zig {self.version()} for {self.triple}" + (", static" if self._is_musl else "")

    def compile_c(
        self, source: Path, object_path: Path, include_dirs: Sequence[Path], flags: Sequence[str] = ()
    ) -> None:
        """Compile one C source into an object file."""
        arguments = compile_arguments(source, object_path, include_dirs, (*_COMPILE_FLAGS, *flags))
        self._run(arguments, f"{source.name} does not compile for {self.triple}")

    def link(self, objects: Sequence[Path], output: Path, libraries: Sequence[str] = _LIBRARIES) -> None:
        """Link objects and system libraries into an executable."""
        arguments = [*_LINK_FLAGS, *link_arguments(objects, output), *_library_flags(libraries)]
        self._run(arguments, f"{output.name} does not link for {self.triple}")

    def _run(self, arguments: Sequence[str], failure: str, stop: StopSignal | None = None) -> None:
        version = self.version()
        command = [*_zig(self.python), "cc", "-target", self.triple, *self.extra_flags, *arguments]
        # If zig lay below the working directory, its cache for musl would depend on that, and musl be built again.
        folder = self.cache_dir
        run_compiler(command, _environment(folder), failure, f"zig {version}", folder=folder, stop=stop)


def _zig(python: Path) -> list[str]:
    return [str(python), "-P", "-m", "ziglang"]  # -P ignores a ziglang.py in the working directory


def _library_flags(libraries: Sequence[str]) -> list[str]:
    return [f"-l{library}" for library in libraries]


def _environment(cache_dir: Path) -> dict[str, str]:
    folder = str(cache_dir.absolute())
    return {"ZIG_GLOBAL_CACHE_DIR": folder, "ZIG_LOCAL_CACHE_DIR": folder, "HOME": folder, "LC_ALL": "C"}


@lru_cache(maxsize=8)
def _zig_version(python: Path) -> str:
    next_step = f"Install it with: {python} -m pip install ziglang"
    command = [*_zig(python), "version"]
    try:
        outcome = run_limited(command, _VERSION_LIMITS, environment={"LC_ALL": "C"})
    except OSError as error:
        raise ToolchainError(f"{python} cannot be run: {error}.", next_step=next_step) from error
    if outcome.succeeded and outcome.log.strip():
        return outcome.log.strip()
    raise ToolchainError(f"The C toolchain 'ziglang' is not installed in {python}.", next_step=next_step)
