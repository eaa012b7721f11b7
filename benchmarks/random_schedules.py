"""Random Adams2019 schedules of the small pipelines, with what the plug-in itself says of their cost.

One child process for each pipeline, because the plug-in prints its costs to the standard error of the
process it runs in, and may crash it. The child is this file itself.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.schedule_pipelines import SmallPipeline, pipelines

CHECKOUT = Path(__file__).resolve().parents[1]
_SEED_LINE = re.compile(r"^seed (\d+)(?: runtime_ms ([0-9.e+-]+))?$")
_COST_LINE = re.compile(r"^Best cost: (\S+)$")


@dataclass(frozen=True)
class RandomSchedule:
    """One schedule the plug-in sampled.

    Attributes:
        featurization_path: the `.featurization` file.
        plugin_cost_ms: the plug-in's own prediction, as printed (6 digits).
        runtime_ms: the fastest of a few runs on this machine; None when it was not measured.
    """

    pipeline: str
    seed: int
    featurization_path: Path
    plugin_cost_ms: float
    runtime_ms: float | None


@dataclass(frozen=True)
class SearchLog:
    """The schedules of one pipeline, and what the search printed on its standard output (warnings)."""

    schedules: tuple[RandomSchedule, ...]
    standard_output: str


def sample_schedules(
    pipeline: str,
    seeds: Iterable[int],
    parallelism: int,
    folder: Path,
    environment: Mapping[str, str],
    *,
    weights_path: Path | None = None,
    measure: bool = False,
    timeout_s: float = 600,
) -> SearchLog:
    """Sample one schedule for each seed into `folder`; schedules of different seeds may be equal.

    Raises:
        RuntimeError: the child failed; the end of its output is in the message.
    """
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "benchmarks.random_schedules", pipeline, str(parallelism), str(folder)]
    command += [str(seed) for seed in seeds]
    command += ["--weights", str(weights_path)] if weights_path else []
    command += ["--measure"] if measure else []
    child_environment = dict(environment) | {"HL_DEBUG_AUTOSCHEDULE": "1", "HL_NUM_THREADS": str(parallelism)}
    done = subprocess.run(
        command,
        cwd=CHECKOUT,
        env=child_environment,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"sampling schedules of {pipeline} failed ({done.returncode}): {done.stderr[-2000:]}")
    return SearchLog(tuple(_parse_log(pipeline, folder, done.stderr)), done.stdout)


def _parse_log(pipeline: str, folder: Path, log: str) -> Iterable[RandomSchedule]:
    cost_ms = None
    for line in log.splitlines():
        if match := _COST_LINE.match(line):
            cost_ms = float(match[1])
        elif match := _SEED_LINE.match(line):
            assert cost_ms is not None, "the plug-in printed no cost"
            path = folder / f"{match[1]}.featurization"
            yield RandomSchedule(pipeline, int(match[1]), path, cost_ms, float(match[2]) if match[2] else None)
            cost_ms = None


def _search_in_child(arguments: argparse.Namespace) -> None:
    import halide as hl

    hl.load_plugin(str(Path(hl.install_dir()) / "lib64" / "libautoschedule_adams2019.so"))
    target = hl.get_host_target()
    build = pipelines()[arguments.pipeline]
    for seed in arguments.seeds:
        parameters = {
            "parallelism": str(arguments.parallelism),
            "beam_size": "1",
            "random_dropout": str(1 + seed % 8),
            "random_dropout_seed": str(seed),
        }
        if arguments.weights:
            parameters["weights_path"] = arguments.weights
        small = build()
        pipeline = hl.Pipeline(small.output)
        result = pipeline.apply_autoscheduler(target, hl.AutoschedulerParams("Adams2019", parameters))
        (Path(arguments.folder) / f"{seed}.featurization").write_bytes(bytes(result.featurization))
        runtime = f" runtime_ms {_fastest_ms(small)}" if arguments.measure else ""
        os.write(2, f"\nseed {seed}{runtime}\n".encode())


def _fastest_ms(small: SmallPipeline) -> float:
    """Compile in this process, run at the estimates, keep the fastest of a few runs."""
    import numpy as np

    small.output.infer_input_bounds(list(small.extents))
    random = np.random.default_rng(0)
    for image in small.inputs:
        pixels = np.asarray(image.get())
        pixels[...] = (random.random(pixels.shape) * 255).astype(pixels.dtype)
    small.output.compile_jit()
    durations_s = []
    for _ in range(5):
        started_s = time.monotonic()
        small.output.realize(list(small.extents))
        durations_s.append(time.monotonic() - started_s)
    return 1000 * min(durations_s[1:])


def main() -> None:
    """The child's entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pipeline")
    parser.add_argument("parallelism", type=int)
    parser.add_argument("folder")
    parser.add_argument("seeds", type=int, nargs="+")
    parser.add_argument("--weights")
    parser.add_argument("--measure", action="store_true")
    _search_in_child(parser.parse_args())


if __name__ == "__main__":
    main()
