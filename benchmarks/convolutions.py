"""ResNet-18's convolutions, tuned, against TensorFlow's oneDNN and LiteRT's XNNPACK on the same cores.

    python -m benchmarks.convolutions [--budget-s 600] [--run FOLDER] [--isa AVX2]
    python -m benchmarks.convolutions --target host --isa AVX512_CORE

C1 to C12 (batch 1, 32-bit floats, NHWC, bias and ReLU) are tuned in one run under one budget (`sdk network tune`). Then
each is built as a network of one layer, checked, and timed in turns with both others (`sdk network bench`): the median
time of a call, with the generators' own schedules, with the tuned ones, and of the others. oneDNN uses no higher
instruction set than named; XNNPACK uses what the processor has, and so counts only where that is named. With `--run`
the run is kept, and one that is there is used instead of tuning again.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import sdk
from benchmarks.networks import CONTENDERS, OTHERS, ratio
from halide_autotune.autotune_loop.network.models import read_model, with_random_weights
from halide_autotune.autotune_loop.network.operators import Operator

_MEAN, _LEAST = 1.0, 0.6
_OF_ALL = "AVX512_CORE"


def main(words: Sequence[str] | None = None) -> int:
    """Print a row for each convolution; exit code 1 if a goal is missed or a result is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget-s", type=float, default=600.0, help="of the whole run")
    parser.add_argument("--target", default="x86-64")
    parser.add_argument("--isa", default="AVX2", help=f"the highest that oneDNN may use; XNNPACK counts at {_OF_ALL}")
    parser.add_argument("--run", type=Path, help="the folder of the run")
    arguments = parser.parse_args(words)
    os.environ.update(ONEDNN_MAX_CPU_ISA=arguments.isa, TF_CPP_MIN_LOG_LEVEL="3")
    counted = OTHERS if arguments.isa == _OF_ALL else OTHERS[:1]
    found: dict[str, sdk.BenchedNetwork] = {}
    print(f"{'ms':8}" + "".join(f"{name:>12}" for name in (*CONTENDERS, *(f"/ {name}" for name in OTHERS))))
    with tempfile.TemporaryDirectory(prefix="convolutions-") as folder:
        run = arguments.run or Path(folder) / "run"
        operators = read_model("resnet18-convolutions").operators
        if not run.exists():
            whole = _saved(operators, Path(folder) / "convolutions.keras")
            options = sdk.RunOptions.of(target=arguments.target, budget_s=arguments.budget_s, no_history=True)
            sdk.tune_network(whole, options=options, run_folder=run)
        for operator in operators:
            name = operator.places[0]
            found[name] = sdk.bench_network(_saved([operator], Path(folder) / f"{name}.keras"), run=run)
            times = [found[name].times_ms.get(each, math.nan) for each in CONTENDERS]
            ratios = [ratio(found[name], each) for each in OTHERS]
            print(f"{name:8}" + "".join(f"{one:12.3f}" for one in times + ratios), flush=True)
    reached = not any(each.wrong for each in found.values())
    for other in OTHERS:
        ratios = [ratio(each, other) for each in found.values()]
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"times as fast as {other}: {mean:.2f} in geometric mean, {min(ratios):.2f} to {max(ratios):.2f}")
        reached &= other not in counted or (mean >= _MEAN and min(ratios) >= _LEAST)
    return 0 if reached else 1


def _saved(operators: Sequence[Operator], path: Path) -> str:
    """A Keras model of convolutions side by side, each with its own input."""
    import keras

    inputs, outputs = [], []
    for operator in operators:
        settings, shape = operator.settings, operator.inputs[0].shape
        layer = keras.layers.Conv2D(
            operator.output.shape[-1],
            (settings["kernel_rows"], settings["kernel_columns"]),
            strides=settings["stride_rows"],
            padding="same",
            activation="relu",
        )
        inputs.append(keras.Input(shape))
        outputs.append(layer(inputs[-1]))
    with_random_weights(keras.Model(inputs, outputs)).save(path)
    return str(path)


if __name__ == "__main__":
    sys.exit(main())
