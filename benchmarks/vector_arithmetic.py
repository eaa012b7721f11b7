"""Which arithmetic Halide's vector code gets wrong: every idiom in vectors, against the same in plain loops.

    python -m benchmarks.vector_arithmetic                    # for HVX, under QEMU; no device is needed
    python -m benchmarks.vector_arithmetic --target riscv64-rvv --lanes 16 32 64

A cell says 'right', how many of the 512 elements are wrong, or that there is no code. It is a table of Halide's faults,
not of this project's: the exit code is 1 only where an idiom could not be tried.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import sdk
from benchmarks.vector_idioms import IDIOMS
from halide_autotune.targets.schedule.plugins import ALL_AT_ROOT

_GENERATORS = Path(__file__).with_name("vector_idioms.py")
_WRONG = re.compile(r"(\d+) of \d+ elements")


def main() -> int:
    """Print a row for each idiom as it is done."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="hexagon-v66")
    parser.add_argument("--lanes", type=int, nargs="+", default=[64, 128])
    arguments = parser.parse_args()
    print(f"{'idiom':30}" + "".join(f"{lanes:>4} lanes   " for lanes in arguments.lanes), flush=True)
    tried = True
    for idiom in IDIOMS:
        cells = [try_idiom(idiom.name, lanes, arguments.target) for lanes in arguments.lanes]
        print(f"{idiom.name:30}" + "".join(f"{cell:13}" for cell in cells), flush=True)
        tried &= "not tried" not in cells
    return 0 if tried else 1


def try_idiom(name: str, lanes: int, target: str) -> str:
    """What became of it: 'right', '234 wrong', 'no code' or 'not tried'."""
    try:
        (result,) = sdk.bench(
            sdk.GeneratorSpec(f"{_GENERATORS}:{name}", (f"lanes={lanes}",)),
            ["own"],
            target=target,
            turns=1,
            options=sdk.RunOptions.of(no_history=True, clock="emulated"),
        )
    except sdk.SdkError as error:
        if "code generator" in str(error):
            return "no code"
        print(error, file=sys.stderr)
        return "not tried"
    if result.reference != ALL_AT_ROOT:  # vectors that are compared with other vectors tell nothing
        return "not tried"
    if result.failure is None:
        return "right"
    wrong = _WRONG.search(result.failure.message)
    if wrong is None:
        print(result.failure.message, file=sys.stderr)
    return "not tried" if wrong is None else f"{wrong[1]} wrong"


if __name__ == "__main__":
    sys.exit(main())
