"""A product of two square matrices, tuned, against TensorFlow's oneDNN on the same cores.

    python -m benchmarks.matrix_product [--size 1024] [--budget-s 300] [--isa AVX2]

It is `examples/matrix_product.py`. Before and after tuning, TensorFlow computes it in a process of its own, as a
`tf.function`, whose call takes some 0.1 ms of it, with no higher instruction set than named; its faster median counts.
Printed: all three times, and TensorFlow's over the tuned one; exit code 1 if that is under 0.8.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import sdk

_PRODUCT = Path(__file__).parents[1] / "examples" / "matrix_product.py"
_GOAL = 0.8
_WARM_UP, _CALLS = 20, 100


def main() -> int:
    """Print the times and their ratio; exit code 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1024, help="rows and columns of the matrices")
    parser.add_argument("--budget-s", type=float, default=300.0)
    parser.add_argument("--target", default="x86-64")
    parser.add_argument("--isa", default="AVX2", help="the highest that oneDNN may use, as it calls them")
    parser.add_argument("--time-tensorflow", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.time_tensorflow:
        print(_tensorflow_ms(arguments.size))
        return 0
    before_ms = _of_tensorflow(arguments)
    sizes = tuple(f"{name}={arguments.size}" for name in ("rows", "columns", "depth"))
    options = sdk.RunOptions.of(target=arguments.target, budget_s=arguments.budget_s, no_history=True)
    tuned_ms = sdk.autotune(sdk.GeneratorSpec(str(_PRODUCT), sizes), options=options).best.tuned_ms
    if tuned_ms is None:
        print("no schedule could be timed")
        return 1
    after_ms = _of_tensorflow(arguments)
    ratio = min(before_ms, after_ms) / tuned_ms
    print(f"TensorFlow {before_ms:.3f} ms before, {after_ms:.3f} ms after; tuned {tuned_ms:.3f} ms: {ratio:.2f}")
    return 0 if ratio >= _GOAL else 1


def _of_tensorflow(arguments: argparse.Namespace) -> float:
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": arguments.isa, "TF_CPP_MIN_LOG_LEVEL": "3"}
    again = ["--size", str(arguments.size), "--time-tensorflow"]
    command = [sys.executable, "-m", "benchmarks.matrix_product", *again]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


def _tensorflow_ms(size: int) -> float:
    import tensorflow as tf

    left, right = (tf.random.normal((size, size)) for _ in range(2))
    computed = tf.function(lambda: 0.5 * tf.matmul(left, right))
    durations_s = []
    for _ in range(_WARM_UP + _CALLS):
        began_s = time.perf_counter()
        computed().numpy()
        durations_s.append(time.perf_counter() - began_s)
    return 1e3 * statistics.median(durations_s[_WARM_UP:])


if __name__ == "__main__":
    sys.exit(main())
