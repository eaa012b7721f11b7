"""ResNet-18's convolutions, tuned, against TensorFlow's oneDNN on the same cores, at the same instruction set.

    python -m benchmarks.convolutions [--budget-s 900] [--isa AVX2]

C1 to C12 (batch 1, 32-bit floats, NHWC, bias and ReLU) are tuned in one run under one budget (`sdk network tune
resnet18-convolutions`); before and after it TensorFlow computes each in a process of its own, as a `tf.function`, whose
call takes some 0.1 ms of it. Printed: both times, and TensorFlow's over the tuned one; at the end the geometric mean.
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
from pathlib import Path

import sdk
from halide_autotune.autotune_loop.network.models import read_model
from halide_autotune.autotune_loop.network.operators import Operator

GOAL, LOWEST = 1.0, 0.6
_WARM_UP, _CALLS = 20, 100


def main() -> int:
    """Print a row for each convolution; exit code 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget-s", type=float, default=900.0)
    parser.add_argument("--target", default="x86-64")
    parser.add_argument("--isa", default="AVX2", help="the highest that oneDNN may use, as it calls them")
    parser.add_argument("--time-tensorflow", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.time_tensorflow:
        print(json.dumps({operator.places[0]: _tensorflow_ms(operator) for operator in _operators()}))
        return 0
    before_ms = _of_tensorflow(arguments.isa)
    options = sdk.RunOptions.of(target=arguments.target, budget_s=arguments.budget_s, no_history=True)
    with tempfile.TemporaryDirectory(prefix="convolutions-") as folder:
        found = sdk.tune_network("resnet18-convolutions", options=options, run_folder=Path(folder) / "run")
    after_ms = _of_tensorflow(arguments.isa)
    tuned_ms = {each.task.places[0][0]: each.tuned_ms or math.nan for each in found.operators}
    ratios = []
    print(f"{'':6}{'TensorFlow before, after':>28}{'tuned':>12}{'times as fast':>16}")
    for name in before_ms:
        ratios.append(min(before_ms[name], after_ms[name]) / tuned_ms[name])
        both = f"{before_ms[name]:.3f}, {after_ms[name]:.3f} ms"
        print(f"{name:6}{both:>28}{tuned_ms[name]:9.3f} ms{ratios[-1]:16.2f}")
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    print(f"in geometric mean {mean:.2f}")
    return 0 if mean >= GOAL and min(ratios) >= LOWEST else 1


def _operators() -> tuple[Operator, ...]:
    return read_model("resnet18-convolutions").operators


def _of_tensorflow(isa: str) -> dict[str, float]:
    """Milliseconds of each, in a process whose oneDNN uses nothing higher."""
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": isa, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-m", "benchmarks.convolutions", "--time-tensorflow"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _tensorflow_ms(operator: Operator) -> float:
    import tensorflow as tf

    settings, (rows, columns, channels_in) = operator.settings, operator.inputs[0].shape
    channels_out = operator.output.shape[-1]
    picture = tf.random.normal((1, rows, columns, channels_in))
    kernel = (settings["kernel_rows"], settings["kernel_columns"], channels_in, channels_out)
    weights, bias = tf.random.normal(kernel), tf.random.normal((channels_out,))

    @tf.function  # type: ignore[untyped-decorator]
    def computed(source: tf.Tensor) -> tf.Tensor:
        made = tf.nn.conv2d(source, weights, settings["stride_rows"], "SAME")
        return tf.nn.relu(tf.nn.bias_add(made, bias))

    durations_s = []
    for _ in range(_WARM_UP + _CALLS):
        began_s = time.perf_counter()
        computed(picture).numpy()
        durations_s.append(time.perf_counter() - began_s)
    return 1e3 * statistics.median(durations_s[_WARM_UP:])


if __name__ == "__main__":
    sys.exit(main())
