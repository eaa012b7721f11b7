"""ResNet-18's convolutions, or a product of matrices, tuned, against TensorFlow's oneDNN on the same cores.

    python -m benchmarks.against_onednn convolutions [--budget-s 900] [--isa AVX2]
    python -m benchmarks.against_onednn matrix-product [--size 1024] [--budget-s 300] [--isa AVX2]
    python -m benchmarks.against_onednn convolutions --target-features avx512_zen4 --isa AVX512_CORE

C1 to C12 (batch 1, 32-bit floats, NHWC, bias and ReLU) are tuned in one run under one budget (`sdk network tune
resnet18-convolutions`); the product of two square matrices is `examples/matrix_product.py`. Before and after that
TensorFlow computes each in a process of its own, as a `tf.function`, whose call takes some 0.1 ms of it, with no higher
instruction set than named. Printed: both times, and TensorFlow's over the tuned one; at the end the geometric mean.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sdk
from halide_autotune.autotune_loop.network.models import read_model
from halide_autotune.autotune_loop.network.operators import Operator

_PRODUCT = Path(__file__).parents[1] / "examples" / "matrix_product.py"
_WARM_UP, _CALLS = 20, 100


@dataclass(frozen=True)
class Goal:
    """How many times as fast as TensorFlow: in geometric mean, and each at least."""

    mean: float
    lowest: float


GOALS = {"convolutions": Goal(1.0, 0.6), "matrix-product": Goal(0.8, 0.8)}


def main() -> int:
    """Print a row for each operator; exit code 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=[*GOALS])
    parser.add_argument("--budget-s", type=float, default=900.0)
    parser.add_argument("--size", type=int, default=1024, help="rows and columns of the matrices")
    parser.add_argument("--target", default="x86-64")
    parser.add_argument("--target-features", default="", help="further ones of Halide's target, such as avx512_zen4")
    parser.add_argument("--isa", default="AVX2", help="the highest that oneDNN may use, as it calls them")
    parser.add_argument("--time-tensorflow", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.time_tensorflow:
        print(json.dumps(_tensorflow_ms(arguments)))
        return 0
    before_ms = _of_tensorflow(arguments)
    with tempfile.TemporaryDirectory(prefix="onednn-") as folder:
        tuned_ms = _tuned_ms(arguments, Path(folder) / "run")
    after_ms = _of_tensorflow(arguments)
    ratios = []
    print(f"{'':8}{'TensorFlow before, after':>28}{'tuned':>12}{'times as fast':>16}")
    for name in before_ms:
        ratios.append(min(before_ms[name], after_ms[name]) / tuned_ms[name])
        both = f"{before_ms[name]:.3f}, {after_ms[name]:.3f} ms"
        print(f"{name:8}{both:>28}{tuned_ms[name]:9.3f} ms{ratios[-1]:16.2f}")
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    print(f"in geometric mean {mean:.2f}")
    goal = GOALS[arguments.what]
    return 0 if mean >= goal.mean and min(ratios) >= goal.lowest else 1


def _tuned_ms(arguments: argparse.Namespace, run_folder: Path) -> dict[str, float]:
    options = sdk.RunOptions.of(
        target=arguments.target,
        target_features=tuple(filter(None, arguments.target_features.split(","))),
        budget_s=arguments.budget_s,
        no_history=True,
    )
    if arguments.what == "convolutions":
        found = sdk.tune_network("resnet18-convolutions", options=options, run_folder=run_folder)
        return {each.task.places[0][0]: each.tuned_ms or math.nan for each in found.operators}
    sizes = tuple(f"{name}={arguments.size}" for name in ("rows", "columns", "depth"))
    product = sdk.autotune(sdk.GeneratorSpec(str(_PRODUCT), sizes), options=options, run_folder=run_folder)
    return {"product": product.best.tuned_ms or math.nan}


def _operators() -> tuple[Operator, ...]:
    return read_model("resnet18-convolutions").operators


def _of_tensorflow(arguments: argparse.Namespace) -> dict[str, float]:
    """Milliseconds of each, in a process whose oneDNN uses nothing higher."""
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": arguments.isa, "CUDA_VISIBLE_DEVICES": "-1"}
    environment["TF_CPP_MIN_LOG_LEVEL"] = "3"
    again = [arguments.what, "--size", str(arguments.size), "--time-tensorflow"]
    command = [sys.executable, "-m", "benchmarks.against_onednn", *again]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _tensorflow_ms(arguments: argparse.Namespace) -> dict[str, float]:
    if arguments.what == "convolutions":
        return {operator.places[0]: _convolution_ms(operator) for operator in _operators()}
    import tensorflow as tf

    left, right = (tf.random.normal((arguments.size, arguments.size)) for _ in range(2))
    return {"product": _median_ms(tf.function(lambda: 0.5 * tf.matmul(left, right)))}


def _convolution_ms(operator: Operator) -> float:
    import tensorflow as tf

    settings, (rows, columns, channels_in) = operator.settings, operator.inputs[0].shape
    channels_out = operator.output.shape[-1]
    picture = tf.random.normal((1, rows, columns, channels_in))
    kernel = (settings["kernel_rows"], settings["kernel_columns"], channels_in, channels_out)
    weights, bias = tf.random.normal(kernel).numpy(), tf.random.normal((channels_out,)).numpy()

    @tf.function  # type: ignore[untyped-decorator]
    def computed(source: tf.Tensor) -> tf.Tensor:
        # Constants of the graph: oneDNN then packs them once, not with each call.
        made = tf.nn.conv2d(source, tf.constant(weights), settings["stride_rows"], "SAME")
        return tf.nn.relu(tf.nn.bias_add(made, tf.constant(bias)))

    return _median_ms(lambda: computed(picture))


def _median_ms(computed: Callable[[], Any]) -> float:
    durations_s = []
    for _ in range(_WARM_UP + _CALLS):
        began_s = time.perf_counter()
        computed().numpy()
        durations_s.append(time.perf_counter() - began_s)
    return 1e3 * statistics.median(durations_s[_WARM_UP:])


if __name__ == "__main__":
    sys.exit(main())
