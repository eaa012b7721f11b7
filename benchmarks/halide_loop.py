"""One batch of Halide's own `adams2019_autotune_loop.sh`, unchanged, and where its time goes.

    python -m benchmarks.halide_loop examples/corner_detector.cpp

The script builds 32 samples (search, object with the runtime in it, C++ benchmark program), times them one after the
other on this machine and retrains the cost model. It tells neither its phases nor its best time in a form to rely
on: the phases are told apart here by what it prints and when, and times are read from each sample's `bench.txt`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from halide_autotune.targets.errors import SdkError, ToolchainError, UsageError
from halide_autotune.targets.halide_install import HalideInstall, find_halide_install
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler
from halide_autotune.weights.baseline import baseline_weights
from halide_autotune.weights.weights_file import write_weights

SCRIPT = "adams2019_autotune_loop.sh"
PLUGIN = "libautoschedule_adams2019.so"
TOOLS = ("featurization_to_sample", "adams2019_retrain_cost_model", "get_host_target")
# Features of this machine that the loop does not train for.
LEFT_OUT_FEATURES = (
    "avx10_1 avx512 avx512_cannonlake avx512_knl avx512_sapphirerapids avx512_skylake avx512_zen4 avx512_zen5"
).split()
BENCHMARK_LINE = re.compile(r"^Benchmark for \S+ produces best case of (\S+) sec/iter", re.MULTILINE)
# The end of a sample file: runtime in ms, pipeline id, schedule id.
TRAILER = struct.Struct("<fii")
# The printed time has 6 digits and the sample holds a float32.
SAME_TIME = 1e-5


@dataclass(frozen=True)
class HalideLoopResult:
    """What one batch of Halide's loop gave.

    Attributes:
        samples: schedules that were built and timed.
        seconds: wall time of the whole script.
        best_ms: the fastest of them, as Halide's RunGen timed it; None if there is none.
        failed: schedules of the batch that were not built or not timed.
        spoiled: samples whose file holds another time than was measured: the script takes the eighth word of
            everything that the benchmark prints.
        compile_seconds, benchmark_seconds, retrain_seconds: where the time went.
    """

    samples: int
    seconds: float
    best_ms: float | None
    failed: int
    spoiled: int
    compile_seconds: float
    benchmark_seconds: float
    retrain_seconds: float

    @property
    def samples_per_minute(self) -> float:
        """Schedules built and timed per minute of wall time."""
        return 60 * self.samples / self.seconds


def run_halide_loop(
    generator_binary: Path, name: str, target: str, scratch: Path, time_limit_s: float = 3600
) -> HalideLoopResult:
    """Run one batch of Halide's loop on a built C++ generator.

    Args:
        generator_binary: the executable generator.
        name: the generator's registered name.
        target: Halide's target string, of code that this machine can run.
        scratch: an empty or missing folder; the samples stay in `scratch/samples`.
        time_limit_s: after this the script and its children are killed.

    Raises:
        UsageError: scratch is not empty, or a path has a space in it, which the script cannot take.
        ToolchainError: the script is not in this Halide, fails, or takes longer than the limit.
    """
    halide = find_halide_install()
    for path in (generator_binary, scratch):
        if re.search(r"\s", str(path.resolve())):
            raise UsageError(f"{path}: Halide's loop cannot take a path with a space in it.")
    arguments = _lay_out(halide, generator_binary, name, target, scratch)
    started = time.monotonic()
    marks = _run_marking(arguments, scratch / "loop.log", time_limit_s)
    ended = time.monotonic()
    compiled, benchmarked = marks["compiled"], marks["benchmarked"]
    folders = [path for path in (scratch / "samples").glob("batch_*/*") if path.is_dir()]
    times_ms = {folder: _measured_ms(folder) for folder in folders}
    good_ms = [value for value in times_ms.values() if value is not None]
    return HalideLoopResult(
        samples=len(good_ms),
        seconds=ended - started,
        best_ms=min(good_ms, default=None),
        failed=len(folders) - len(good_ms),
        spoiled=sum(_is_spoiled(folder, value) for folder, value in times_ms.items() if value is not None),
        compile_seconds=compiled - started,
        benchmark_seconds=benchmarked - compiled,
        retrain_seconds=ended - benchmarked,
    )


def _lay_out(halide: HalideInstall, generator: Path, name: str, target: str, scratch: Path) -> list[str]:
    """The folders that the script expects of a Halide build, and its command line."""
    script = halide.tools_dir / SCRIPT
    if not script.is_file():
        raise ToolchainError(f"{script}: this Halide comes without its autotuning loop.")
    if scratch.exists() and (not scratch.is_dir() or any(scratch.iterdir())):
        raise UsageError(f"{scratch}: expected an empty or missing folder.")
    tools, distribution = scratch.resolve() / "bin", scratch.resolve() / "halide"
    tools.mkdir(parents=True)
    distribution.mkdir()
    links = {tools / PLUGIN: halide.plugin_path("Adams2019")}
    links |= {tools / tool: halide.bin_dir / tool for tool in TOOLS}
    links |= {distribution / "tools": halide.tools_dir, distribution / "include": halide.include_dir}
    for link, destination in links.items():
        link.symlink_to(destination)
    weights = scratch.resolve() / "baseline.weights"
    write_weights(baseline_weights(halide.plugin_path("Adams2019")), weights)
    # Its first line is #!/bin/bash, but the wheel does not keep it executable.
    command = ["bash", str(script), str(generator.resolve()), name, target, str(weights)]
    return [*command, str(tools), str(distribution), str(scratch.resolve() / "samples")]


def _run_marking(arguments: Sequence[str], log: Path, time_limit_s: float) -> dict[str, float]:
    """Run the script; the monotonic times at which its phases ended, by the lines it prints."""
    marks: dict[str, float] = {}
    with (
        log.open("w") as output,
        subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=output, text=True, errors="replace", start_new_session=True
        ) as process,
    ):
        assert process.stdout is not None
        timer = threading.Timer(time_limit_s, _kill_session, (process.pid,))
        timer.start()
        try:
            for line in process.stdout:
                output.write(line)
                if line.endswith("done.\n"):  # the end of "Compiling 32 samples...."
                    marks["compiled"] = time.monotonic()
                elif line.startswith("Retraining model"):
                    marks["benchmarked"] = time.monotonic()
            exit_code = process.wait()
        finally:
            timer.cancel()
            _kill_session(process.pid)
    if exit_code == -signal.SIGKILL:
        raise ToolchainError(f"Halide's loop was killed after {time_limit_s:g} s.", next_step=f"See {log}.")
    if exit_code != 0 or len(marks) != 2:
        raise ToolchainError(f"Halide's loop failed with exit code {exit_code}.", next_step=f"See {log}.")
    return marks


def _kill_session(session: int) -> None:
    """End a script and all it started: `timeout` gives each of its commands a process group of its own."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            # After the name, which may hold anything: state, parent, process group, session.
            if int(stat.read_text(errors="replace").rpartition(")")[2].split()[3]) == session:
                os.kill(int(stat.parent.name), signal.SIGKILL)


def _measured_ms(folder: Path) -> float | None:
    """What RunGen printed for one sample; None where it was not built, not run, or ran to no end."""
    path = folder / "bench.txt"
    found = BENCHMARK_LINE.search(path.read_text(errors="replace")) if path.is_file() else None
    return float(found[1]) * 1000 if found else None


def _is_spoiled(folder: Path, measured_ms: float) -> bool:
    """Whether the sample that the model is trained with is missing or says something else than was measured."""
    samples = list(folder.glob("*.sample"))
    if len(samples) != 1 or samples[0].stat().st_size < TRAILER.size:
        return True
    stored_ms, _, _ = TRAILER.unpack(samples[0].read_bytes()[-TRAILER.size :])
    return not math.isclose(stored_ms, measured_ms, rel_tol=SAME_TIME)


def training_target(halide: HalideInstall) -> str:
    """This machine's target without AVX-512, which Halide's loop leaves out as well."""
    tool = str(halide.bin_dir / "get_host_target")
    done = subprocess.run([tool, *LEFT_OUT_FEATURES], check=True, capture_output=True, text=True, timeout=60)
    return done.stdout.strip()


def format_result(result: HalideLoopResult) -> str:
    """The result in a few lines."""
    best = "none" if result.best_ms is None else f"{result.best_ms:.3f} ms"
    return "\n".join(
        [
            f"samples        {result.samples} ({result.failed} failed, {result.spoiled} spoiled)",
            f"time           {result.seconds:.1f} s = {result.samples_per_minute:.1f} samples a minute",
            f"  building     {result.compile_seconds:.1f} s",
            f"  benchmarking {result.benchmark_seconds:.1f} s",
            f"  retraining   {result.retrain_seconds:.1f} s",
            f"best           {best}",
        ]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Build a C++ generator, run one batch of Halide's loop on it, print what it gave."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("generator", type=Path, help="a C++ generator's source")
    parser.add_argument("--name", help="its registered name; the file's by default")
    parser.add_argument("--target", help="Halide target; this machine's, without AVX-512, by default")
    parser.add_argument("--scratch", type=Path, help="an empty or missing folder to keep; temporary by default")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    chosen = parser.parse_args(arguments)
    halide = find_halide_install()
    with tempfile.TemporaryDirectory(prefix="halide-loop-") as temporary:
        scratch = chosen.scratch or Path(temporary) / "loop"
        compiler = HostCppCompiler(halide, ContentCache(Path(temporary) / "cache"), os.environ)
        try:
            if not chosen.generator.is_file():
                raise UsageError(f"{chosen.generator}: there is no such C++ source.")
            generator = compiler.build_generator(chosen.generator)
            target = chosen.target or training_target(halide)
            name = chosen.name or chosen.generator.stem
            result = run_halide_loop(generator, name, target, scratch)
        except SdkError as error:
            print(error, file=sys.stderr)
            return error.exit_code
    print(json.dumps(asdict(result)) if chosen.json else format_result(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
