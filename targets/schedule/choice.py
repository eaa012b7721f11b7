"""Which schedule a build gets: the generator's own, an autoscheduler's, or a header's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from targets.errors import UsageError
from targets.generator.run import AutoschedulerRequest
from targets.halide_install import HalideInstall
from targets.profile.profile import TargetProfile
from targets.schedule.header import read_schedule
from targets.schedule.named_autoschedulers import li2018, mullapudi2016, profile_autoscheduler
from targets.schedule.plugin import schedule_autoscheduler
from targets.toolchain.host_cpp_compiler import HostCppCompiler

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
