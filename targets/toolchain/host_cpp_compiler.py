"""This machine's C++ compiler, for what links with libHalide: generators and autoscheduler plug-ins."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from targets.errors import GeneratorError, ToolchainError
from targets.halide_install import HalideInstall
from targets.process.compiler_run import find_compiler
from targets.process.content_cache import ContentCache, file_sha256
from targets.process.limited_process import ProcessLimits, run_limited
from targets.process.stop_signal import StopSignal

_COMPILE_LIMITS = ProcessLimits(time_s=300.0, memory_bytes=8 * 2**30)
CPP_COMPILERS = ("g++", "c++", "clang++")
_MAXIMUM_ERROR_LINES = 12


class HostCppCompiler:
    """Compiles C++ against the Halide wheel, cached by the content of the source and of its own headers.

    Args:
        stop: kills the compiler when it is set, which is an error like any other.
    """

    def __init__(
        self,
        halide: HalideInstall,
        cache: ContentCache,
        environment: Mapping[str, str],
        stop: StopSignal | None = None,
    ) -> None:
        self._halide = halide
        self._cache = cache
        self._environment = dict(environment)
        self._stop = stop

    def build_generator(self, source: Path) -> Path:
        """Build a generator executable from one C++ source.

        Raises:
            ToolchainError: no C++ compiler is installed.
            GeneratorError: the source does not compile; the message has the compiler's first errors.
        """
        link = [str(self._halide.gengen_library), "-rdynamic"]
        return self._build(source, "generator", link, ".generator")

    def build_plugin(self, source: Path) -> Path:
        """Build an autoscheduler plug-in from one C++ source.

        Raises:
            ToolchainError, GeneratorError: as for `build_generator`.
        """
        return self._build(source, "plugin", ["-fPIC", "-shared"], ".so")

    def _build(self, source: Path, what: str, extra: list[str], suffix: str) -> Path:
        key = [what, self._halide.version, str(self._halide.root), *extra]
        key += [file_sha256(path) for path in _source_files(source)]
        return self._cache.get_or_build(key, suffix, lambda output: self._compile(source, extra, output))

    def _compile(self, source: Path, extra: list[str], output: Path) -> None:
        fix = "On Debian: apt-get install g++. Python generators can be tuned without one."
        command = [
            find_compiler(CPP_COMPILERS, self._environment, "A C++ compiler is needed", fix),
            "-std=c++17",
            # The wheel's libHalide is built without run-time type information.
            "-fno-rtti",
            f"-I{self._halide.include_dir}",
            f"-I{self._halide.tools_dir}",
            str(source),
            *extra,
            f"-L{self._halide.lib_dir}",
            "-lHalide",
            f"-Wl,-rpath,{self._halide.lib_dir}",
            "-ldl",
            "-lpthread",
            "-o",
            str(output),
        ]
        outcome = run_limited(command, _COMPILE_LIMITS, environment=self._environment, stop=self._stop)
        if outcome.stopped:
            raise ToolchainError(f"The compiler was stopped before {source} was compiled.")
        if not outcome.succeeded:
            raise GeneratorError(
                f"{source} does not compile (the compiler {outcome.describe()}):\n{_first_errors(outcome.log)}",
                next_step="\nFix the source. Halide's headers and libraries need no options: the SDK adds them.",
            )


def _source_files(source: Path) -> list[Path]:
    """Return the source and, transitively, the headers that it includes by a relative path."""
    found = [source]
    for file in found:
        text = file.read_text(errors="replace")
        for include in re.findall(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', text, re.MULTILINE):
            header = file.parent / include
            if header.is_file() and header not in found:
                found.append(header)
    return found


def _first_errors(log: str) -> str:
    lines = log.splitlines()
    errors = [index for index, line in enumerate(lines) if "error" in line]
    start = errors[0] if errors else 0
    return "\n".join(lines[start : start + _MAXIMUM_ERROR_LINES])
