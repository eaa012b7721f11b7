"""What weights are worth before anything is timed: the first choice of Halide's search with them, against its own.

    python -m benchmarks.first_choice [--weights x86-64] [--target x86-64] [--size 1024x768] [EXAMPLE ...]

Of each example, which the weights were not trained on, the full beam search's schedule and the same eight random ones
are found with Halide's weights and with the others, and all are timed in turns. Printed: how many times as fast the
first choice is, and the best of the nine; at the end the geometric means. For an emulated target take --size 256x192.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import sdk
from benchmarks.simulated_clock_ranking import Bench, open_bench
from halide_autotune.autotune_loop.search.plan import full_beam_point, random_points
from halide_autotune.sdk.select.named_weights import find_weights
from halide_autotune.sdk.settings import read_settings
from halide_autotune.targets.generator.program import GeneratorProgram, open_generator
from halide_autotune.targets.generator.reference import GeneratorReference, parse_generator, resolve_name
from halide_autotune.targets.generator.run import GeneratedFiles, GeneratorRequest, run_generator
from halide_autotune.targets.process.limited_process import ProcessLimits
from halide_autotune.targets.schedule.autoschedulers import profile_autoscheduler
from halide_autotune.weights.arithmetic import perturb_weights
from halide_autotune.weights.weights_file import Weights, write_weights

EXAMPLES = Path(__file__).parents[1] / "examples"
PICTURES = ("bilateral_grid", "camera_pipeline", "corner_detector", "separable_filter", "stencil_chain")
OTHERS = ("convolution_layer", "matrix_product")
_LIMITS = ProcessLimits(time_s=300.0, memory_bytes=8 * 2**30)
GOALS = (1.3, 1.1)
# No example's first choice may be slower than that.
LEAST = 0.9


def main() -> int:
    """Print a row for each example; exit code 1 if a goal is missed, or a first choice is much slower."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("examples", nargs="*", default=[*PICTURES, *OTHERS], metavar="EXAMPLE")
    parser.add_argument("--weights", default="x86-64", help="a name that `sdk weights` lists, or a file")
    parser.add_argument("--target", default="x86-64", help="a profile that `sdk targets` lists")
    parser.add_argument("--size", default="1024x768", help="of the examples' pictures")
    parser.add_argument("--turns", type=int, default=9)
    arguments = parser.parse_args()
    settings, bench = read_settings(), open_bench(arguments.target)
    width, _, height = arguments.size.partition("x")
    sets = [find_weights(name, settings).weights for name in ("baseline", arguments.weights)]
    rows = []
    print(f"{'example':20}{'first choice':>14}{'best of nine':>14}   (Halide's weights: 1)", flush=True)
    for name in arguments.examples:
        with tempfile.TemporaryDirectory(prefix="first-choice-") as folder:
            parameters = (f"width={width}", f"height={height}") if name in PICTURES else ()
            row = _row(name, parameters, sets, bench, Path(folder), arguments.turns)
        rows.append(row)
        print(f"{name:20}" + "".join(f"{ratio:14.2f}" for ratio in row), flush=True)
    means = [math.exp(statistics.fmean(math.log(row[place]) for row in rows)) for place in (0, 1)]
    print(f"{'geometric mean':20}" + "".join(f"{mean:14.2f}" for mean in means))
    is_met = all(mean >= goal for mean, goal in zip(means, GOALS, strict=True))
    return 0 if is_met and min(row[0] for row in rows) >= LEAST else 1


def _row(
    name: str, parameters: tuple[str, ...], sets: list[Weights], bench: Bench, folder: Path, turns: int
) -> tuple[float, float]:
    file = EXAMPLES / f"{name}.py"
    reference = parse_generator(str(file), parameters)
    program = open_generator(reference, bench.halide, bench.compiler, bench.environment)
    reference = resolve_name(reference, program.names)
    chosen = [_schedules(program, reference, each, bench, folder / str(place)) for place, each in enumerate(sets)]
    program.close()
    # Both sets may have found the same: then it is one schedule, timed once.
    headers: dict[str, str] = {}
    for path in (path for paths in chosen for path in paths):
        headers.setdefault(path.read_text(), str(path))
    compared = sdk.bench(
        sdk.GeneratorSpec(str(file), parameters), [*headers.values()], target=bench.profile.name, turns=turns
    )
    times_ms = {each.label: each.median_ms for each in compared}
    own, others = ([times_ms[headers[path.read_text()]] or math.inf for path in paths] for paths in chosen)
    return own[0] / others[0], min(own) / min(others)


def _schedules(
    program: GeneratorProgram, reference: GeneratorReference, weights: Weights, bench: Bench, folder: Path
) -> list[Path]:
    """The headers of the beam search and of eight random ones; those that come to an end."""
    with ThreadPoolExecutor(2) as pool:
        requests = _requests(reference, weights, bench, folder)
        results = pool.map(lambda request: run_generator(program, request, _LIMITS), requests)
        return [each.files["schedule"] for each in results if isinstance(each, GeneratedFiles)]


def _requests(
    reference: GeneratorReference, weights: Weights, bench: Bench, folder: Path
) -> Iterator[GeneratorRequest]:
    folder.mkdir()
    points = [full_beam_point(0, folder), *islice(random_points(0, 0, 0, folder), 8)]
    for place, point in enumerate(points):
        path = folder / f"{place}.weights"
        write_weights(perturb_weights(weights, point.weights_noise, point.seed), path)
        parameters = {
            "beam_size": str(point.beam_size),
            "random_dropout": str(point.random_dropout),
            "random_dropout_seed": str(point.seed),
            "weights_path": str(path),
        }
        search = profile_autoscheduler(bench.halide, bench.profile, bench.profile.machine.parallelism, parameters)
        yield GeneratorRequest(
            str(reference.name),
            str(reference.name),
            f"schedule_{place}",
            folder,
            ("schedule",),
            bench.kernel_target,
            reference.parameters,
            search,
        )


if __name__ == "__main__":
    sys.exit(main())
