"""Random Anderson2021 schedules of C++ generators, with what the plug-in itself says of their cost.

No GPU is needed: the plug-in searches for a target that this machine does not have, and nothing is compiled. Each
schedule is a run of the generator of its own, because the plug-in prints its cost, among megabytes of other things,
to the standard error of the process it runs in, and may crash it.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks.random_schedules import RandomSchedule, SearchLog
from halide_autotune.targets.generator.program import ExecutableGeneratorProgram
from halide_autotune.targets.generator.run import AutoschedulerRequest, GeneratorRequest
from halide_autotune.targets.halide_install import find_halide_install
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

# The last of the passes ends with it, and six decimals are printed whatever the size.
_COST_LINE = re.compile(r"^Best cost: (\S+)$", re.MULTILINE)


def build_generator(source: Path, cache_folder: Path, environment: Mapping[str, str]) -> Path:
    """The executable of a C++ generator, from the cache or compiled.

    Raises:
        SdkError: it does not compile.
    """
    return HostCppCompiler(find_halide_install(), ContentCache(cache_folder), environment).build_generator(source)


def sample_gpu_schedules(
    generator: Path,
    seeds: Iterable[int],
    parallelism: int,
    halide_target: str,
    folder: Path,
    environment: Mapping[str, str],
    *,
    weights_path: Path | None = None,
    timeout_s: float = 600,
) -> SearchLog:
    """Sample one schedule for each seed into `folder`; schedules of different seeds may be equal.

    Args:
        generator: a generator executable; the first generator it registers is taken.
        parallelism: streaming multiprocessors of the GPU.
        halide_target: a target with a `cuda` feature.

    Raises:
        RuntimeError: a search failed; the end of its output is in the message.
    """
    folder.mkdir(parents=True, exist_ok=True)
    halide = find_halide_install()
    name = ExecutableGeneratorProgram(generator, environment, halide.lib_dir).names[0]
    search = partial(_search, generator, name, parallelism, halide_target, folder, environment, weights_path, timeout_s)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(search, seeds))
    return SearchLog(tuple(schedule for schedule, _ in found), "".join(printed for _, printed in found))


def _search(
    generator: Path,
    name: str,
    parallelism: int,
    halide_target: str,
    folder: Path,
    environment: Mapping[str, str],
    weights_path: Path | None,
    timeout_s: float,
    seed: int,
) -> tuple[RandomSchedule, str]:
    parameters = {
        "parallelism": str(parallelism),
        "beam_size": "1",
        "random_dropout": "1",
        "random_dropout_seed": str(seed),
        # Without it most seeds give the same few schedules, and the search takes several times as long.
        "randomize_tilings": "1",
    }
    if weights_path:
        parameters["weights_path"] = str(weights_path)
    plugins = (find_halide_install().plugin_path("Anderson2021"),)
    autoscheduler = AutoschedulerRequest("Anderson2021", plugins, parameters)
    request = GeneratorRequest(
        name, name, str(seed), folder, ("featurization",), halide_target, autoscheduler=autoscheduler
    )
    done = subprocess.run(
        [str(generator), *request.arguments()],
        env=dict(environment) | {"HL_DEBUG_AUTOSCHEDULE": "1", "HL_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    costs = _COST_LINE.findall(done.stderr)
    if done.returncode != 0 or not costs:
        raise RuntimeError(f"sampling a schedule of {name} failed ({done.returncode}): {done.stderr[-2000:]}")
    return RandomSchedule(name, seed, folder / f"{seed}.featurization", float(costs[-1]), None), done.stdout
