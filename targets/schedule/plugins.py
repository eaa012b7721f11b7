"""The SDK's own autoscheduler plug-ins: apply a header or data, stop after the search, schedule everything at root."""

from __future__ import annotations

from pathlib import Path

from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.run import SCHEDULE_PATH, AutoschedulerRequest
from halide_autotune.targets.process.scratch_folder import scratch_folder
from halide_autotune.targets.schedule.header import schedule_name
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

ALL_AT_ROOT = "AllAtRoot"
REPLAY = "SdkReplay"
_SCHEDULE = "SdkSchedule"
_SEARCH = "SdkSearch"
_REPLAY_SOURCE = Path(__file__).parent / "replay_plugin.cpp"
_ROOT_SOURCE = Path(__file__).parent / "root_plugin.cpp"
_SEARCH_SOURCE = Path(__file__).parent / "search_plugin.cpp"

_SCHEDULE_SOURCE = """\
#include "Halide.h"
// The generator may have a function of this name from an earlier header; it must not replace this one.
#pragma GCC visibility push(hidden)
#include "tuned.schedule.h"
#pragma GCC visibility pop

namespace {{

struct ApplySchedule {{
    void operator()(const Halide::Pipeline &pipeline, const Halide::Target &target,
                    const Halide::AutoschedulerParams &parameters, Halide::AutoSchedulerResults *results) {{
        apply_schedule_{name}(pipeline, target);
        results->target = target;
        results->autoscheduler_params = parameters;
    }}
}};

struct Register {{
    Register() {{ Halide::Pipeline::add_autoscheduler("{autoscheduler}", ApplySchedule()); }}
}} at_load;

}}  // namespace
"""


def schedule_autoscheduler(schedule_text: str, compiler: HostCppCompiler) -> AutoschedulerRequest:
    """Build the autoscheduler that applies a header to any generator; cached by the header's content.

    Raises:
        ToolchainError: no C++ compiler is installed.
        GeneratorError: the header does not compile.
    """
    with scratch_folder("schedule") as folder:
        header = folder / "tuned.schedule.h"
        header.write_text(schedule_text)
        source = folder / "schedule_plugin.cpp"
        source.write_text(_SCHEDULE_SOURCE.format(name=schedule_name(schedule_text), autoscheduler=_SCHEDULE))
        try:
            return AutoschedulerRequest(_SCHEDULE, (compiler.build_plugin(source),))
        except GeneratorError as error:
            # The files that the compiler names are gone by now.
            first = error.message.partition("error: ")[2].split("\n")[0]
            raise GeneratorError(
                f"The schedule header does not compile{first and f': {first}'}.",
                next_step="Use a header that `sdk autotune`, `sdk ship` or an autoscheduler of Halide 21 wrote.",
            ) from error


def replay_autoscheduler(schedule: Path, compiler: HostCppCompiler) -> AutoschedulerRequest:
    """Return the autoscheduler that applies a schedule that is data: nothing is compiled for another schedule.

    Args:
        schedule: a file as `autotune_loop.schedule.as_json.print_json` writes it; its path has no white space, '='
            or ',' (see `plain_folder`).

    Raises:
        ToolchainError: no C++ compiler is installed.
    """
    return AutoschedulerRequest(REPLAY, (compiler.build_plugin(_REPLAY_SOURCE),), {SCHEDULE_PATH: str(schedule)})


def build_search_plugin(compiler: HostCppCompiler) -> Path:
    """Build the plug-in of `search_only`; cached.

    Raises:
        ToolchainError: no C++ compiler is installed.
    """
    return compiler.build_plugin(_SEARCH_SOURCE)


def search_only(
    request: AutoschedulerRequest, plugin: Path, featurization: Path, *, explains: bool = False
) -> AutoschedulerRequest:
    """Return the same search, which ends without compiling once its features are written to `featurization`.

    Args:
        explains: it logs what it does, and where it came to a dead end.
    """
    own = {"search": request.name, "featurization_path": str(featurization), "explains": str(int(explains))}
    return request.within(_SEARCH, plugin, own)


def root_autoscheduler(compiler: HostCppCompiler) -> AutoschedulerRequest:
    """Build the autoscheduler that puts everything at root, in plain loops: right and compilable where others are not.

    Raises:
        ToolchainError: no C++ compiler is installed.
    """
    return AutoschedulerRequest(ALL_AT_ROOT, (compiler.build_plugin(_ROOT_SOURCE),))
