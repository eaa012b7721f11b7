"""Halide's autoschedulers with the parameters that a machine decides, and schedules by the names that users give."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.targets.errors import GeneratorError, ToolchainError, UsageError
from halide_autotune.targets.generator.run import AutoschedulerRequest
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.profile.profile import OWN_SCHEDULE, MachineParameters, TargetProfile
from halide_autotune.targets.schedule.header import read_schedule
from halide_autotune.targets.schedule.plugins import root_autoscheduler
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

# Mullapudi2016's own default for the cost of a load relative to an arithmetic operation.
_MULLAPUDI_BALANCE = 40
_FALLBACK_CACHE_BYTES = 8 * 2**20
# Behind the name of a profile's autoscheduler: its search with a beam of one.
GREEDY = ":greedy"


@dataclass(frozen=True)
class ScheduleChoice:
    """A schedule that a kernel can be built with.

    Attributes:
        label: the user's word for it.
        autoscheduler: what applies it; None is the generator's own schedule.
        searches: whether that is one of Halide's, which needs estimates.
    """

    label: str
    autoscheduler: AutoschedulerRequest | None
    searches: bool = True


def resolve_schedule(
    text: str,
    profile: TargetProfile,
    parallelism: int,
    halide: HalideInstall,
    apply_header: Callable[[str], AutoschedulerRequest],
) -> ScheduleChoice:
    """Return the schedule for `own`, the name of an autoscheduler, or the path of a `.schedule.h` or of JSON.

    The profile's autoscheduler with `GREEDY` behind its name keeps one state in its beam search.

    Args:
        apply_header: from the text of the file to what applies it.

    Raises:
        UsageError: it is none of these.
        GeneratorError: the header cannot be read or does not compile.
        ToolchainError: it is a header, and no C++ compiler is installed.
    """
    profile_name = profile.autoscheduler.name.lower()
    match text.lower():
        case "own":
            return ScheduleChoice(text, None, searches=False)
        case "mullapudi2016":
            return ScheduleChoice(text, mullapudi2016(halide, parallelism, profile.machine))
        case "li2018":
            return ScheduleChoice(text, li2018(halide, parallelism))
        case word if word == profile_name:
            return ScheduleChoice(text, profile_autoscheduler(halide, profile, parallelism, {}))
        case word if word == f"{profile_name}{GREEDY}":
            return ScheduleChoice(text, profile_autoscheduler(halide, profile, parallelism, {"beam_size": "1"}))
    path = Path(text)
    if not path.is_file():
        raise UsageError(
            f"There is no schedule {text!r}.",
            next_step=f"Give the path of a .schedule.h or a .json, {OWN_SCHEDULE!r}, {profile_name}, mullapudi2016"
            " or li2018.",
        )
    schedule = _read_json(path) if path.suffix == ".json" else read_schedule(path)
    try:
        return ScheduleChoice(text, apply_header(schedule), searches=False)
    except GeneratorError as error:
        raise GeneratorError(f"{path}: {error.message}", next_step=error.next_step) from error


def _read_json(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise GeneratorError(f"The schedule {path} cannot be read: {error}.") from error


def mullapudi2016(halide: HalideInstall, parallelism: int, machine: MachineParameters) -> AutoschedulerRequest:
    """Return the heuristic autoscheduler for references: it always ends, and is not the one that is tuned."""
    parameters = {
        "parallelism": str(parallelism),
        "last_level_cache_size": str(machine.last_level_cache_bytes or _FALLBACK_CACHE_BYTES),
        "balance": str(_MULLAPUDI_BALANCE),
    }
    return _request(halide, "Mullapudi2016", parameters)


def li2018(halide: HalideInstall, parallelism: int) -> AutoschedulerRequest:
    """Return the second choice for references. On a GPU it is the first: the target makes it schedule for the GPU."""
    return _request(halide, "Li2018", {"parallelism": str(parallelism)})


def reference_autoschedulers(
    halide: HalideInstall, parallelism: int, profile: TargetProfile, compiler: HostCppCompiler
) -> Iterator[AutoschedulerRequest]:
    """Yield the autoschedulers that may make a reference, the best first; compile "all at root" only if it is reached.

    On a GPU Mullapudi2016 schedules for the processor: its experimental GPU mode in Halide 21 makes blocks of 16,384
    threads and more, which no card runs. If vectors are in doubt, "all at root" comes first: a wrong vector idiom is
    wrong in all schedules with equal vectors.
    """
    if profile.has_doubtful_vectors:
        yield from _at_root(compiler)
    on_processor = mullapudi2016(halide, parallelism, profile.machine)
    second = li2018(halide, parallelism)
    yield from (on_processor, second) if profile.machine.gpu is None else (second, on_processor)
    if not profile.has_doubtful_vectors:
        yield from _at_root(compiler)


def profile_autoscheduler(
    halide: HalideInstall, profile: TargetProfile, parallelism: int, parameters: Mapping[str, str]
) -> AutoschedulerRequest:
    """Return the profile's autoscheduler with the figures of its card; `parameters` of one search win."""
    card = profile.machine.gpu
    of_card = {} if card is None else card.search_parameters()
    merged = {**of_card, **profile.autoscheduler.parameters, "parallelism": str(parallelism), **parameters}
    return _request(halide, profile.autoscheduler.name, merged)


def _at_root(compiler: HostCppCompiler) -> Iterator[AutoschedulerRequest]:
    with contextlib.suppress(ToolchainError):  # without a C++ compiler there is one fewer
        yield root_autoscheduler(compiler)


def _request(halide: HalideInstall, name: str, parameters: Mapping[str, str]) -> AutoschedulerRequest:
    return AutoschedulerRequest(name, (halide.plugin_path(name),), parameters)
