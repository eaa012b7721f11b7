"""Halide's autoschedulers with the parameters that a machine decides, and schedules as a user names them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from targets.errors import ToolchainError, UsageError
from targets.generator.run import AutoschedulerRequest
from targets.halide_install import HalideInstall
from targets.profile.profile import MachineParameters, TargetProfile
from targets.schedule.header import read_schedule
from targets.schedule.plugins import root_autoscheduler, schedule_autoscheduler
from targets.toolchain.host_cpp_compiler import HostCppCompiler

# Mullapudi2016's own default for the cost of a load against an arithmetic operation.
_MULLAPUDI_BALANCE = 40
_FALLBACK_CACHE_BYTES = 8 * 2**20


def mullapudi2016(halide: HalideInstall, parallelism: int, machine: MachineParameters) -> AutoschedulerRequest:
    """The heuristic autoscheduler that makes references: independent of the one being tuned, and it ends."""
    parameters = {
        "parallelism": str(parallelism),
        "last_level_cache_size": str(machine.last_level_cache_bytes or _FALLBACK_CACHE_BYTES),
        "balance": str(_MULLAPUDI_BALANCE),
    }
    return _request(halide, "Mullapudi2016", parameters)


def li2018(halide: HalideInstall, parallelism: int) -> AutoschedulerRequest:
    """The second choice for a reference; the first on a GPU, where the target decides that it schedules for one."""
    return _request(halide, "Li2018", {"parallelism": str(parallelism)})


def reference_autoschedulers(
    halide: HalideInstall, parallelism: int, profile: TargetProfile, compiler: HostCppCompiler
) -> Iterator[AutoschedulerRequest]:
    """Those that may make a reference, the preferred first; everything at root is the last, compiled only if reached.

    On a GPU Li2018 schedules for it, and Mullapudi2016 for the processor beside it: Halide 21's experimental
    GPU mode of Mullapudi2016 makes blocks of 16,384 threads and more, which no card runs.

    Where vectors are in doubt everything at root is the first: what is wrong in them is so in all schedules with equal
    vectors, whoever made them.
    """
    if profile.has_doubtful_vectors:
        yield from _at_root(compiler)
    on_processor = mullapudi2016(halide, parallelism, profile.machine)
    second = li2018(halide, parallelism)
    yield from (on_processor, second) if profile.machine.gpu is None else (second, on_processor)
    if not profile.has_doubtful_vectors:
        yield from _at_root(compiler)


def _at_root(compiler: HostCppCompiler) -> Iterator[AutoschedulerRequest]:
    with contextlib.suppress(ToolchainError):  # without a C++ compiler there is one fewer
        yield root_autoscheduler(compiler)


def profile_autoscheduler(
    halide: HalideInstall, profile: TargetProfile, parallelism: int, parameters: Mapping[str, str]
) -> AutoschedulerRequest:
    """The profile's own autoscheduler, with what its card is like and with further parameters of one search."""
    card = profile.machine.gpu
    of_card = {} if card is None else card.search_parameters()
    merged = {**of_card, **profile.autoscheduler.parameters, "parallelism": str(parallelism), **parameters}
    return _request(halide, profile.autoscheduler.name, merged)


def _request(halide: HalideInstall, name: str, parameters: Mapping[str, str]) -> AutoschedulerRequest:
    return AutoschedulerRequest(name, (halide.plugin_path(name),), parameters)


OWN_SCHEDULE = "own"
_AUTOSCHEDULERS = ("mullapudi2016", "li2018")


@dataclass(frozen=True)
class ScheduleChoice:
    """A schedule that a kernel can be built with.

    Attributes:
        label: as the user named it.
        autoscheduler: what applies it; None is the generator's own schedule.
    """

    label: str
    autoscheduler: AutoschedulerRequest | None


def resolve_schedule(
    text: str, profile: TargetProfile, parallelism: int, halide: HalideInstall, compiler: HostCppCompiler
) -> ScheduleChoice:
    """`own`, the name of an autoscheduler, or the path of a `.schedule.h`.

    Raises:
        UsageError: it is none of these.
        GeneratorError: the header cannot be read or does not compile.
        ToolchainError: a header, and no C++ compiler to apply it with.
    """
    word = text.lower()
    if word == OWN_SCHEDULE:
        return ScheduleChoice(text, None)
    if word == "mullapudi2016":
        return ScheduleChoice(text, mullapudi2016(halide, parallelism, profile.machine))
    if word == "li2018":
        return ScheduleChoice(text, li2018(halide, parallelism))
    if word == profile.autoscheduler.name.lower():
        return ScheduleChoice(text, profile_autoscheduler(halide, profile, parallelism, {}))
    path = Path(text)
    words = (profile.autoscheduler.name.lower(), *_AUTOSCHEDULERS)
    if not path.is_file():
        raise UsageError(
            f"There is no schedule {text!r}.",
            next_step=f"Give the path of a .schedule.h, {OWN_SCHEDULE!r}, or one of {', '.join(words)}.",
        )
    return ScheduleChoice(text, schedule_autoscheduler(read_schedule(path), compiler))
