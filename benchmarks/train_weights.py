"""Weights for a profile, from random programs timed on this machine, judged on pipelines they have never seen.

    python -m benchmarks.train_weights --folder recipe [--profile x86-64] [--pipelines 40] [--batch-size 24] [--ship]

The recipe: (1) one run over random programs (`benchmarks/random_pipeline.py`, seeds 1 to --pipelines), a batch of
random schedules each; (2) one run for each example in `examples/`, for judging alone; (3) training from Halide's
weights on the random programs, and the mean of both: it forgets less of what Halide's know of other pipelines
(Wortsman et al. 2022, WiSE-FT); (4) both sets of weights scored on the examples. The defaults of (3) were chosen on
random programs alone, by leaving a quarter of them out in turn (--choose does that). With --ship the new weights go
into `weights/shipped/`, and only if they put more pairs in order *and* have better schedules among their first 8.
What is recorded already in the folder is not recorded again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import sdk
from halide_autotune.autotune_loop.cost_model.process.model_process import tensorflow_environment
from halide_autotune.autotune_loop.cost_model.ranking import RankingScores
from halide_autotune.autotune_loop.events import BatchDone, Event
from halide_autotune.sdk.api.retrain import evaluate_weights
from halide_autotune.sdk.output import silent_stderr
from halide_autotune.sdk.settings import export_variables
from halide_autotune.weights.lineage import Lineage, write_lineage
from halide_autotune.weights.registry import SHIPPED_FOLDER
from halide_autotune.weights.weights_file import Weights, write_weights

PROJECT = Path(__file__).parents[1]
SMALL = {"width": "1024", "height": "768"}
EXAMPLES = {
    "bilateral_grid": SMALL,
    "camera_pipeline": SMALL,
    "convolution_layer": {},
    "corner_detector": SMALL,
    "matrix_product": {},
    "separable_filter": SMALL,
    "stencil_chain": SMALL,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", default="x86-64")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--pipelines", type=int, default=40)
    parser.add_argument("--batch-size", type=int, default=24)
    parser.add_argument("--judged", type=int, default=48, help="schedules of each example (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=600)
    parser.add_argument("--learning-rate", type=float, default=3e-4)
    parser.add_argument("--loss", default="relative_throughput")
    parser.add_argument("--share", type=float, default=0.5, help="of the trained weights in the mean")
    parser.add_argument("--choose", action="store_true", help="compare settings of the training, and end")
    parser.add_argument("--ship", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    training = record_random_programs(options)
    judging = [] if options.choose else [record_example(name, options) for name in EXAMPLES]
    with silent_stderr():
        export_variables(tensorflow_environment({}, len(os.sched_getaffinity(0))))
        from benchmarks.weights_recipe import Recipe, choose, train

        if options.choose:
            print(choose(training))
            return 0
        made, lineage = train(training, Recipe(options.loss, options.epochs, options.learning_rate, options.share))
    weights = options.folder / f"{options.profile}.weights"
    write_weights(made, weights)
    scores = {score.label: score for score in evaluate_weights([str(weights)], judging)}
    new, old = scores[str(weights)].overall, scores["baseline"].overall
    print(json.dumps({"trained": asdict(new), "baseline": asdict(old)}, indent=2))
    if not is_better(new, old):
        say("They are not better on both counts, so they are not shipped.")
        return 1
    if options.ship:
        ship(made, lineage, options.profile, new)
    return 0


def is_better(new: RankingScores, old: RankingScores) -> bool:
    """More pairs in order, and a better schedule among the first 8: `best_in_top_8` is 1 where it is the best."""
    assert new.pairwise_accuracy is not None and old.pairwise_accuracy is not None, "no example was timed"
    assert new.best_in_top_8 is not None and old.best_in_top_8 is not None, "no example was timed"
    return new.pairwise_accuracy > old.pairwise_accuracy and new.best_in_top_8 < old.best_in_top_8


def record_random_programs(options: argparse.Namespace) -> Path:
    folder: Path = options.folder / "random_programs"
    if not folder.exists():
        sets = [(f"seed={seed}", f"stages={6 + seed % 10}") for seed in range(1, options.pipelines + 1)]
        record("benchmarks/random_pipeline.py", folder, sets, options.batch_size, options.profile)
    return folder


def record_example(name: str, options: argparse.Namespace) -> Path:
    folder: Path = options.folder / name
    if not folder.exists():
        parameters = [f"{key}={value}" for key, value in EXAMPLES[name].items()]
        record(f"examples/{name}.py", folder, [parameters], options.judged, options.profile)
    return folder


def record(generator: str, folder: Path, sets: Sequence[Sequence[str]], batch_size: int, profile: str) -> None:
    say(f"recording {generator}: {len(sets)} × {batch_size} schedules")
    sdk.autotune(
        sdk.GeneratorSpec(str(PROJECT / generator), argsets=tuple(tuple(items) for items in sets)),
        target=profile,
        device="local",
        run_folder=folder,
        options=sdk.RunOptions.of(
            no_history=True,
            rounds=1,
            # Schedules of every quality: what is learnt must hold for bad ones, too.
            batch_size=batch_size,
            pool_factor=1.0,
            random_share=1.0,
            full_search_limit_s=20.0,
            weights="baseline",
        ),
        listen=tell,
    )


def tell(event: Event) -> None:
    if isinstance(event, BatchDone):
        say(f"  pipeline {event.task_index}: {event.measured} timed, {event.failed} failed")


def ship(made: Weights, lineage: Lineage, profile: str, held_out: RankingScores) -> None:
    SHIPPED_FOLDER.mkdir(exist_ok=True)
    target = SHIPPED_FOLDER / f"{profile}.weights"
    write_weights(made, target)
    note = "random programs (benchmarks/train_weights.py); scores are on the pipelines of examples/, never trained on"
    training = replace(
        lineage.training,
        held_out_samples=held_out.samples,
        pairwise_accuracy=held_out.pairwise_accuracy,
        best_in_top_8=held_out.best_in_top_8,
    )
    write_lineage(replace(lineage, training=training, note=note), target)
    say(f"shipped: {target}")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
