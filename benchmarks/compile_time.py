"""What compiling C++ generators takes, with Halide's header as it was parsed before and without.

    python -m benchmarks.compile_time examples/*.cpp

Each is compiled in turns with and without, five times; printed are medians in seconds with the least and the most, and
what parsing the header once takes. The goal is that it takes at most two thirds.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from halide_autotune.sdk.settings import read_settings
from halide_autotune.targets.halide_install import find_halide_install
from halide_autotune.targets.process.compiler_run import find_compiler
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.toolchain.host_cpp_compiler import CPP_COMPILERS, halide_flags, language_flags
from halide_autotune.targets.toolchain.precompiled_header import precompiled_header

_TURNS, GOAL = 5, 2 / 3


def main() -> int:
    """Print a row for each source; exit code 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", type=Path, metavar="SOURCE")
    sources = parser.parse_args().sources
    halide, settings = find_halide_install(), read_settings()
    compiler = find_compiler(CPP_COMPILERS, settings.environment, "A C++ compiler is needed", "On Debian: g++")
    flags = language_flags(Path("generator.cpp"), halide_flags(halide))
    with tempfile.TemporaryDirectory() as scratch:
        output = str(Path(scratch) / "object.o")
        started = time.perf_counter()
        folder = precompiled_header(halide, ContentCache(Path(scratch)), compiler, flags, _run)
        seconds = time.perf_counter() - started
        if folder is None:
            print(f"{compiler} parses no header once for all.")
            return 1
        print(f"the header, once: {seconds:.2f} s")
        ratios = []
        for source in sources:
            command = [compiler, *flags, "-c", str(source), "-o", output]
            without, with_it = _in_turns(command, [*command[:1], f"-I{folder}", *command[1:]])
            ratios.append(statistics.median(with_it) / statistics.median(without))
            print(f"{source.stem:24}{_told(without)}  {_told(with_it)}  {ratios[-1]:.2f}", flush=True)
    mean = statistics.geometric_mean(ratios)
    print(f"geometric mean: {mean:.2f} of the time")
    return 0 if mean <= GOAL else 1


def _in_turns(*commands: Sequence[str]) -> list[tuple[float, ...]]:
    turns = [[_seconds(each) for each in commands] for _ in range(_TURNS)]
    return [*zip(*turns, strict=True)]


def _seconds(command: Sequence[str]) -> float:
    started = time.perf_counter()
    _run(command)
    return time.perf_counter() - started


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def _told(times_s: Sequence[float]) -> str:
    return f"{statistics.median(times_s):.2f} s [{min(times_s):.2f}, {max(times_s):.2f}]"


if __name__ == "__main__":
    sys.exit(main())
