"""What comparing a schedule's output with the reference's takes, against one call with its data and no comparison.

    python -m benchmarks.output_check [GENERATOR …] --targets PROFILE …

Each timing begins with that comparison, on the device. The generators, by default two examples with outputs of bytes
and of floats, are built with Mullapudi2016's schedule, at the sizes that they have, and emulated for other machines.
Printed for each: the seconds of both, in the median of several processes, and the ratio; the goal is 2 at most.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.command_start import run_s
from halide_autotune import sdk
from halide_autotune.devices.local.open_device import emulator_command
from halide_autotune.targets.errors import SdkError
from halide_autotune.targets.profile.loader import load_profile

EXAMPLES = Path(__file__).parents[1] / "examples"
DEFAULTS = [str(EXAMPLES / "camera_pipeline.cpp"), str(EXAMPLES / "bilateral_grid.cpp")]
# As a run compares: what only counts where something differs costs, too.
TOLERANCE = "--integer-tolerance 1 --float-relative 1e-3 --float-absolute-scale 1e-4 --far-scale 0.02".split()
GOAL, _PROCESSES = 2.0, 7


def main() -> int:
    """Print a row for each generator and target; exit code 1 if one misses the goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("generators", nargs="*", default=DEFAULTS, metavar="GENERATOR")
    parser.add_argument("--targets", nargs="+", default=["x86-64", "arm64"], metavar="PROFILE")
    arguments = parser.parse_args()
    ratios = []
    for target in arguments.targets:
        for generator in arguments.generators:
            try:
                once_s, checked_s = _times(generator, target)
            except SdkError as error:
                parser.error(str(error))
            ratios.append(checked_s / once_s)
            name = Path(generator).stem
            print(f"{name:20}{target:8}{once_s:8.3f} s{checked_s:8.3f} s{ratios[-1]:7.2f}", flush=True)
    return 0 if max(ratios) <= GOAL else 1


def _times(generator: str, target: str) -> tuple[float, float]:
    """Seconds of a process that calls the kernel once, and of one that compares its output, too."""
    profile = load_profile(target)
    emulator = () if profile.device_kind == "local" else emulator_command(profile)
    with tempfile.TemporaryDirectory() as folder:
        built = sdk.build(generator, Path(folder), target=target, schedule="mullapudi2016")
        command = [*emulator, str(built.benchmark), "--kernel", built.header.stem]
        reference = str(Path(folder) / "reference")
        subprocess.run([*command, "--write-reference", reference], check=True, stdout=subprocess.DEVNULL)
        checked = [*command, "--reference", reference, *TOLERANCE]
        pairs = [(run_s(command), run_s(checked)) for _ in range(_PROCESSES)]
    return statistics.median(once for once, _ in pairs), statistics.median(checked for _, checked in pairs)


if __name__ == "__main__":
    sys.exit(main())
