"""The loop nests of schedules: of many in one run of the generator, without code, or of one on the way to its code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from halide_autotune.targets.generator.run import (
    AutoschedulerRequest,
    GeneratorFailure,
    plain_folder,
)
from halide_autotune.targets.lowering.loop_nest import LoopNest, parse_loop_nest
from halide_autotune.targets.pipeline.inspection import Inspected, run_until_ended
from halide_autotune.targets.pipeline.preparation import PipelinePreparation
from halide_autotune.targets.process.scratch_folder import scratch_folder
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.schedule.plugins import replay_autoscheduler
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

_PLUGIN = Path(__file__).parent / "lowering_plugin.cpp"
_AUTOSCHEDULER, _DESCRIBED = "SdkLower", "SdkDescribed"


@dataclass(frozen=True)
class Refused:
    """A schedule that could not be lowered.

    Attributes:
        message: Halide's, or that it crashed or took too long.
    """

    message: str


@dataclass(frozen=True)
class Lowered:
    """Schedules that were lowered together.

    Attributes:
        nests: of each, in their order.
        duration_s: what the generator took for all of them.
    """

    nests: tuple[LoopNest | Refused, ...]
    duration_s: float


def lower_schedules(
    inspected: Inspected,
    preparation: PipelinePreparation,
    schedules: Sequence[str],
    limit_s: float,
    compiler: HostCppCompiler,
    stop: StopSignal | None = None,
) -> Lowered | GeneratorFailure:
    """Lower schedules.

    Args:
        inspected: its limits hold for all of them together.
        schedules: as JSON, see `autotune_loop.schedule.as_json`.
        limit_s: of processor time for each of them, in whole seconds.

    Raises:
        GeneratorError: a nest is damaged.
        ToolchainError: no C++ compiler is installed.
    """
    with scratch_folder("lower") as scratch, plain_folder(scratch) as folder:
        for place, text in enumerate(schedules):
            (folder / f"{place}.json").write_text(text, encoding="utf-8")
        lowering = preparation.before(_lowering(folder, len(schedules), limit_s, compiler))
        result = run_until_ended(inspected, folder, lowering, stop=stop)
        found = [_read(folder / str(place)) for place in range(len(schedules))]
        whole = [each for each in found if each is not None]
        if len(whole) < len(schedules):
            assert isinstance(result, GeneratorFailure), "the plug-in ends the generator"
            return result
        return Lowered(tuple(whole), result.duration_s)


def described(request: AutoschedulerRequest, nest: Path, compiler: HostCppCompiler) -> AutoschedulerRequest:
    """Return the autoscheduler that also writes the loop nest of its schedule, for `read_nest`, as code is generated.

    Args:
        nest: its path has no white space, '=' or ',' (see `plain_folder`).

    Raises:
        ToolchainError: no C++ compiler is installed.
    """
    own = {"described_for": request.name, "nest_path": str(nest)}
    return request.within(_DESCRIBED, build_lowering_plugin(compiler), own)


def read_nest(path: Path) -> LoopNest:
    """Read a loop nest that a plug-in has written.

    Raises:
        OSError: it cannot be read.
        GeneratorError: it is damaged.
    """
    return parse_loop_nest(path.read_text(encoding="utf-8", errors="replace"), path)


def build_lowering_plugin(compiler: HostCppCompiler) -> Path:
    """Build the plug-in that lowers and describes schedules; cached.

    Raises:
        ToolchainError: no C++ compiler is installed.
    """
    return compiler.build_plugin(_PLUGIN)


def _lowering(folder: Path, count: int, limit_s: float, compiler: HostCppCompiler) -> AutoschedulerRequest:
    applied_by = replay_autoscheduler(folder, compiler)
    parameters = {
        "schedules": str(folder),
        "schedule_count": str(count),
        "limit_s": str(max(1, ceil(limit_s))),
        "applied_by": applied_by.name,
    }
    return AutoschedulerRequest(_AUTOSCHEDULER, (*applied_by.plugins, build_lowering_plugin(compiler)), parameters)


def _read(stem: Path) -> LoopNest | Refused | None:
    nest, refused = stem.with_suffix(".nest"), stem.with_suffix(".refused")
    if nest.is_file():
        return read_nest(nest)
    return (
        Refused(" ".join(refused.read_text(encoding="utf-8", errors="replace").split())) if refused.is_file() else None
    )
