"""What comparing a schedule's output with the reference's takes, against one call with its data and no comparison.

    python -m benchmarks.output_check [GENERATOR …] --targets x86-64 arm64

Each timing begins with that comparison, on the device. The generators, by default two examples with outputs of bytes
and of floats, are built with Mullapudi2016's schedule, at the sizes that they have; for arm64 they are emulated.
Printed for each: the seconds of both, in the median of several processes, and the ratio; the goal is 2 at most.
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

from halide_autotune import sdk

EXAMPLES = Path(__file__).parents[1] / "examples"
DEFAULTS = [str(EXAMPLES / "camera_pipeline.cpp"), str(EXAMPLES / "bilateral_grid.cpp")]
EMULATORS = {"x86-64": [], "arm64": ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]}
# As a run compares: what only counts where something differs costs, too.
TOLERANCE = "--integer-tolerance 1 --float-relative 1e-3 --float-absolute-scale 1e-4 --far-scale 0.02".split()
GOAL, _PROCESSES = 2.0, 7


def main() -> int:
    """Print a row for each generator and target; exit code 1 if one misses the goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("generators", nargs="*", default=DEFAULTS, metavar="GENERATOR")
    parser.add_argument("--targets", nargs="+", choices=EMULATORS, default=[*EMULATORS])
    arguments = parser.parse_args()
    ratios = []
    for target in arguments.targets:
        for generator in arguments.generators:
            once_s, checked_s = _times(generator, target)
            ratios.append(checked_s / once_s)
            name = Path(generator).stem
            print(f"{name:20}{target:8}{once_s:8.3f} s{checked_s:8.3f} s{ratios[-1]:7.2f}", flush=True)
    return 0 if max(ratios) <= GOAL else 1


def _times(generator: str, target: str) -> tuple[float, float]:
    """Seconds of a process that calls the kernel once, and of one that compares its output, too."""
    with tempfile.TemporaryDirectory() as folder:
        built = sdk.build(generator, Path(folder), target=target, schedule="mullapudi2016")
        command = [*EMULATORS[target], str(built.benchmark), "--kernel", built.header.stem]
        reference = str(Path(folder) / "reference")
        subprocess.run([*command, "--write-reference", reference], check=True, stdout=subprocess.DEVNULL)
        checked = [*command, "--reference", reference, *TOLERANCE]
        pairs = [(_seconds(command), _seconds(checked)) for _ in range(_PROCESSES)]
    return statistics.median(once for once, _ in pairs), statistics.median(checked for _, checked in pairs)


def _seconds(command: Sequence[str]) -> float:
    began_s = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began_s


if __name__ == "__main__":
    sys.exit(main())
