"""A header as what applies it: as data where that is possible, which takes milliseconds and no compiler's seconds."""

from __future__ import annotations

import re
from pathlib import Path

from halide_autotune.autotune_loop.schedule.as_json import parse_json, print_json
from halide_autotune.autotune_loop.schedule.model import Schedule
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.run import AutoschedulerRequest
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.schedule.plugins import replay_autoscheduler, schedule_autoscheduler
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

# What a generator's command line takes as the value of a parameter.
_PLAIN_PATH = re.compile(r"[^\s=,]*")


def apply_schedule(schedule: Schedule, compiler: HostCppCompiler, cache: ContentCache) -> AutoschedulerRequest:
    """Return the autoscheduler that applies a schedule.

    Raises:
        GeneratorError: the schedule is inconsistent, or the cache's path has white space, '=' or ','.
        ToolchainError: no C++ compiler is installed, or the cache cannot be written.
    """
    text = print_json(schedule)

    def write(path: Path) -> None:
        path.write_text(text, encoding="utf-8")

    file = cache.get_or_build(["schedule as data", text], ".json", write)
    if not _PLAIN_PATH.fullmatch(str(file)):
        raise GeneratorError(
            f"A generator cannot be given the path {file}, which has white space, '=' or ','.",
            next_step="Set SDK_CACHE_DIR to a folder without.",
        )
    return replay_autoscheduler(file, compiler)


def apply_header(text: str, compiler: HostCppCompiler, cache: ContentCache) -> AutoschedulerRequest:
    """Return the autoscheduler that applies a header: compiled if it has more than a schedule, as an edited one may.

    Args:
        text: a header; or a schedule as JSON.

    Raises:
        GeneratorError: the header does not compile, or the JSON is not a schedule.
        ToolchainError: no C++ compiler is installed, or the cache cannot be written.
    """
    if text.lstrip().startswith("{"):
        return apply_schedule(parse_json(text), compiler, cache)
    try:
        return apply_schedule(parse_schedule(text), compiler, cache)
    except GeneratorError:
        return schedule_autoscheduler(text, compiler)
