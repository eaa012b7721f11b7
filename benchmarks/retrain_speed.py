"""Our training against Halide's own `*_retrain_cost_model`: speed, loss curve, held-out ranking.

    python -m benchmarks.retrain_speed                    random schedules, runtimes from a made-up cost model
    python -m benchmarks.retrain_speed --measure          the same schedules, run on this machine (minutes)
    python -m benchmarks.retrain_speed --samples DIR      every .sample file below a folder
    python -m benchmarks.retrain_speed --autoscheduler Anderson2021

No GPU is needed for Anderson2021, and none is used: its runtimes are always made up, from the plug-in's own cost under
other weights than those the training starts from, with 10 % of noise. They show speed and that something is learnt,
not how well real GPUs are predicted. Its tool takes batches of 64 schedules in random order, where ours takes
one step for all schedules of a pipeline: the loss curves are compared for Adams2019 alone.

Both start from the baseline weights and take the same samples, epochs and learning rate, for 32 cores (the
tool knows no other number). The tool's time for an epoch is what more epochs cost, so its start and its
reading do not count; ours is a whole warm call. Runs alternate; medians, smallest and largest in brackets.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.random_gpu_schedules import build_generator, sample_gpu_schedules
from benchmarks.random_schedules import CHECKOUT, SearchLog, sample_schedules
from benchmarks.schedule_pipelines import pipelines
from halide_autotune.autotune_loop.cost_model.cost_model import CostModel
from halide_autotune.autotune_loop.cost_model.dataset import group_samples, is_held_out
from halide_autotune.autotune_loop.cost_model.fitting import fit
from halide_autotune.autotune_loop.cost_model.network import unpack_weights
from halide_autotune.autotune_loop.cost_model.pipeline_batch import PipelineBatch
from halide_autotune.autotune_loop.cost_model.process.model_worker import limit_threads
from halide_autotune.autotune_loop.cost_model.ranking import RankingScores, score_ranking
from halide_autotune.autotune_loop.specification.options import LearnOptions
from halide_autotune.autotune_loop.store.featurization import read_featurization
from halide_autotune.autotune_loop.store.sample_file import Sample, read_sample, write_sample
from halide_autotune.sdk.settings import read_settings
from halide_autotune.targets.halide_install import find_halide_install
from halide_autotune.weights.arithmetic import perturb_weights
from halide_autotune.weights.baseline import baseline_weights
from halide_autotune.weights.network import Network
from halide_autotune.weights.weights_file import Weights, read_weights, write_weights

TOOL_CORES = 32
LEARNING_RATE = 1e-4
SEEDS_PER_ROUND = 60
GPU_SEEDS_PER_ROUND = 12
GPU_TARGET = "x86-64-linux-cuda-cuda_capability_80"
GPU_EXAMPLES = ("separable_filter", "convolution_layer", "matrix_product", "corner_detector")
_LOSS_LINE = re.compile(r"^Loss: (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class ToolRun:
    """One run of Halide's tool: its whole wall time, and the losses that it printed."""

    duration_s: float
    losses: tuple[float, ...]


def make_samples(folder: Path, weights: Weights, rounds: int, measure: bool) -> list[Sample]:
    """Random schedules, each round with other weights; at most 1,000 of each pipeline."""
    samples: list[Sample] = []
    for pipeline, sample_round in _pipelines(weights.network, measure):
        seen: dict[str, Sample] = {}
        for index in range(rounds):
            weights_path = folder / "search.weights"
            write_weights(perturb_weights(weights, 0.3, index), weights_path)
            log = sample_round(index=index, folder=folder / pipeline, weights_path=weights_path)
            for schedule in log.schedules:
                featurization = read_featurization(schedule.featurization_path, weights.network)
                runtime_ms = schedule.runtime_ms or 1.0
                seen.setdefault(
                    featurization.schedule_sha256, Sample(featurization, runtime_ms, featurization.pipeline_id)
                )
        samples += list(seen.values())[:1000]
        print(f"{pipeline:17} {len(seen):4} distinct schedules", flush=True)
    return samples if measure else _invent_runtimes(samples, weights)


def _pipelines(network: Network, measure: bool) -> Iterator[tuple[str, Callable[..., SearchLog]]]:
    """Names, and what samples a round: `(index, folder, weights_path)`."""
    if network is Network.ADAMS2019:
        for pipeline in pipelines():
            yield pipeline, partial(_sample_cpu_round, pipeline, measure)
        return
    for name in GPU_EXAMPLES:
        generator = build_generator(CHECKOUT / "examples" / f"{name}.cpp", read_settings().cache_folder, os.environ)
        yield name, partial(_sample_gpu_round, generator)


def _sample_cpu_round(pipeline: str, measure: bool, index: int, folder: Path, weights_path: Path) -> SearchLog:
    cores = os.cpu_count() or 1 if measure else TOOL_CORES
    seeds = range(index * SEEDS_PER_ROUND, (index + 1) * SEEDS_PER_ROUND)
    return sample_schedules(pipeline, seeds, cores, folder, os.environ, weights_path=weights_path, measure=measure)


def _sample_gpu_round(generator: Path, index: int, folder: Path, weights_path: Path) -> SearchLog:
    seeds = range(index * GPU_SEEDS_PER_ROUND, (index + 1) * GPU_SEEDS_PER_ROUND)
    return sample_gpu_schedules(generator, seeds, TOOL_CORES, GPU_TARGET, folder, os.environ, weights_path=weights_path)


def _invent_runtimes(samples: Sequence[Sample], weights: Weights) -> list[Sample]:
    """Runtimes from other weights than those the training starts from, with 10 % of noise."""
    teacher = CostModel(perturb_weights(weights, 0.3, 12345), TOOL_CORES)
    costs_ms = teacher.predict([sample.featurization for sample in samples])
    noise = np.exp(0.1 * np.random.default_rng(0).standard_normal(len(samples)))
    return [
        Sample(sample.featurization, float(max(cost_ms, 1e-3) * factor), sample.pipeline_id)
        for sample, cost_ms, factor in zip(samples, costs_ms, noise, strict=True)
    ]


def run_tool(network: Network, sample_paths: Sequence[Path], epochs: int, threads: int, folder: Path) -> ToolRun:
    """Train with Halide's tool into `folder/tool.weights`."""
    command = [str(find_halide_install().bin_dir / f"{network.lower()}_retrain_cost_model")]
    command += [f"--epochs={epochs}", f"--rates={LEARNING_RATE}", f"--num_cores={TOOL_CORES}"]
    command += [f"--initial_weights={folder / 'start.weights'}", f"--weights_out={folder / 'tool.weights'}"]
    command += [f"--best_benchmark={folder / 'benchmark'}", f"--best_schedule={folder / 'schedule'}"]
    if network is Network.ANDERSON2021:  # a file for predictions would turn training off
        command += ["--limit=0", "--verbose=0", "--partition_schedules=0", "--predictions_file="]
    started_s = time.monotonic()
    done = subprocess.run(
        command,
        input="\n".join(map(str, sample_paths)),
        env=dict(os.environ) | {"HL_NUM_THREADS": str(threads)},
        capture_output=True,
        text=True,
        check=True,
    )
    losses = tuple(float(loss) for loss in _LOSS_LINE.findall(done.stdout))
    return ToolRun(time.monotonic() - started_s, losses)


def smooth_as_the_tool(losses: Sequence[float]) -> list[float]:
    """The tool prints a decaying mean over epochs, not the loss of an epoch."""
    smoothed, total, count = [], 0.0, 0.0
    for loss in losses:
        total, count = total + loss, count + 1
        smoothed.append(total / count)
        total, count = total * 0.9, count * 0.9
    return smoothed


def compare_speed(
    batches: Sequence[PipelineBatch], paths: Sequence[Path], arguments: argparse.Namespace, folder: Path
) -> None:
    """Print the time of an epoch of both, and their ratio."""
    start, options = (
        read_weights(folder / "start.weights"),
        LearnOptions(epochs=arguments.epochs, learning_rate=LEARNING_RATE),
    )
    few = max(1, arguments.epochs // 10)
    tool_ms: dict[int, list[float]] = {threads: [] for threads in sorted({1, os.cpu_count() or 1})}
    ours_ms = []
    fit(start, batches, options)
    for _ in range(arguments.repetitions):
        for threads, durations_ms in tool_ms.items():
            short = run_tool(start.network, paths, few, threads, folder).duration_s
            long = run_tool(start.network, paths, arguments.epochs, threads, folder).duration_s
            durations_ms.append(1000 * (long - short) / (arguments.epochs - few))
        started_s = time.monotonic()
        fit(start, batches, options)
        ours_ms.append(1000 * (time.monotonic() - started_s) / arguments.epochs)
    for threads, durations_ms in tool_ms.items():
        print(f"Halide's tool, {threads} thread(s): {_spread(durations_ms)} ms an epoch")
    print(f"ours, {arguments.threads} thread(s):          {_spread(ours_ms)} ms an epoch")
    fastest_ms = min(tool_ms.values(), key=statistics.median)
    ratios = [tool / ours for tool, ours in zip(fastest_ms, ours_ms, strict=True)]
    print(f"ratio, against the tool's faster setting: {_spread(ratios)}")


def compare_results(
    batches: Sequence[PipelineBatch],
    held_out: Sequence[PipelineBatch],
    paths: Sequence[Path],
    arguments: argparse.Namespace,
    folder: Path,
) -> None:
    """Print how far the loss curves lie apart, and how both results rank the held-out schedules."""
    start = read_weights(folder / "start.weights")
    parameters, losses = fit(start, batches, LearnOptions(epochs=arguments.epochs, learning_rate=LEARNING_RATE))
    tool = run_tool(start.network, paths, arguments.epochs, 1, folder)
    if start.network is Network.ADAMS2019:
        ours = np.array(smooth_as_the_tool([float(loss) for loss in losses]))
        difference = np.abs(ours / np.array(tool.losses) - 1)
        print(f"loss, first to last epoch: tool {tool.losses[0]:.4f} to {tool.losses[-1]:.4f}, ", end="")
        print(f"ours {ours[0]:.4f} to {ours[-1]:.4f}; largest relative difference {difference.max():.1e}")
    for name, weights in (
        ("baseline weights", start),
        ("Halide's tool", read_weights(folder / "tool.weights")),
        ("ours", unpack_weights(parameters, start.network)),
    ):
        scores = score_ranking(CostModel(weights, TOOL_CORES), held_out)
        print(f"held-out ranking, {name:16} {_describe(scores)}")


def _describe(scores: RankingScores) -> str:
    return (
        f"{scores.pairwise_accuracy:.2%} of {scores.pairs} pairs, best in top 1 {scores.best_in_top_1:.2f}, "
        f"in top 8 {scores.best_in_top_8:.2f}, Spearman {scores.spearman:.3f}"
    )


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):6.2f} [{min(values):.2f}, {max(values):.2f}]"


def _prepare(arguments: argparse.Namespace, folder: Path, start: Weights) -> list[Sample]:
    if arguments.samples:
        return [read_sample(path, start.network) for path in sorted(arguments.samples.rglob("*.sample"))]
    samples = make_samples(folder, start, arguments.rounds, arguments.measure)
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
        for index, sample in enumerate(samples):
            write_sample(sample, arguments.keep / f"{index}.sample")
    return samples


def main() -> int:
    """Run the comparison and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--autoscheduler", type=Network, choices=list(Network), default=Network.ADAMS2019)
    parser.add_argument("--samples", type=Path, help="a folder of .sample files, instead of making some")
    parser.add_argument("--measure", action="store_true", help="run the schedules on this machine")
    parser.add_argument("--keep", type=Path, help="a folder to keep the made samples in")
    parser.add_argument("--rounds", type=int, default=8, help="random schedules with one set of weights")
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="threads for TensorFlow")
    arguments = parser.parse_args()
    if arguments.measure and arguments.autoscheduler is Network.ANDERSON2021:
        parser.error("--measure runs schedules on this machine's cores; those of Anderson2021 are for a GPU")
    limit_threads(arguments.threads)
    start = baseline_weights(find_halide_install().plugin_path(arguments.autoscheduler))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_weights(start, folder / "start.weights")
        paths, held_out_samples = [], []
        training_samples = []
        for index, sample in enumerate(_prepare(arguments, folder, start)):
            if is_held_out(sample.featurization.schedule_sha256, 0.2, seed=0):
                held_out_samples.append(sample)
            else:
                training_samples.append(sample)
                paths.append(folder / f"{index}.sample")
                write_sample(sample, paths[-1])
        batches = group_samples(training_samples, TOOL_CORES)
        rows = sum(batch.logs.shape[0] * batch.logs.shape[1] for batch in batches)
        schedules = sum(len(batch) for batch in batches)
        print(f"training on {schedules} schedules of {len(batches)} pipelines: {rows} stages in all")
        compare_speed(batches, paths, arguments, folder)
        compare_results(batches, group_samples(held_out_samples, TOOL_CORES), paths, arguments, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
