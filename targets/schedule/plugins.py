"""Autoscheduler plug-ins of our own: apply a header, stop after the search, schedule everything at root."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from targets.generator.run import AutoschedulerRequest
from targets.schedule.header import schedule_name
from targets.toolchain.host_cpp_compiler import HostCppCompiler

PLUGIN_AUTOSCHEDULER = "SdkSchedule"

_PLUGIN_SOURCE = """\
#include "Halide.h"
// A generator may have a function of the same name, from an earlier header: it must not take the place of this one.
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
    """The autoscheduler that applies `schedule_text`, compiled once and cached by its content.

    Raises:
        ToolchainError: no C++ compiler.
        GeneratorError: the header does not compile.
    """
    with tempfile.TemporaryDirectory(prefix="sdk-schedule-") as folder:
        header = Path(folder) / "tuned.schedule.h"
        header.write_text(schedule_text)
        source = Path(folder) / "schedule_plugin.cpp"
        name = schedule_name(schedule_text)
        source.write_text(_PLUGIN_SOURCE.format(name=name, autoscheduler=PLUGIN_AUTOSCHEDULER))
        return AutoschedulerRequest(PLUGIN_AUTOSCHEDULER, (compiler.build_plugin(source),))


_SOURCE = Path(__file__).parent / "search_plugin.cpp"
_NAME = "SdkSearch"


def build_search_plugin(compiler: HostCppCompiler) -> Path:
    """The plug-in, compiled once and cached.

    Raises:
        ToolchainError: no C++ compiler is installed.
    """
    return compiler.build_plugin(_SOURCE)


def search_only(request: AutoschedulerRequest, plugin: Path, featurization: Path) -> AutoschedulerRequest:
    """The same search, ended as soon as its features are written to `featurization`."""
    parameters = {**request.parameters, "search": request.name, "featurization_path": str(featurization)}
    return replace(request, name=_NAME, plugins=(*request.plugins, plugin), parameters=parameters)


_SOURCE = Path(__file__).parent / "root_plugin.cpp"
ALL_AT_ROOT = "AllAtRoot"


def root_autoscheduler(compiler: HostCppCompiler) -> AutoschedulerRequest:
    """The autoscheduler, its plug-in compiled once and cached.

    Raises:
        ToolchainError: no C++ compiler is installed.
    """
    return AutoschedulerRequest(ALL_AT_ROOT, (compiler.build_plugin(_SOURCE),))
