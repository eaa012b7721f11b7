"""Take a generator's own schedule off, and give the estimates that it lacks, before an autoscheduler runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from halide_autotune.targets.generator.run import AutoschedulerRequest
from halide_autotune.targets.pipeline.estimates import plugin_text
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

_PLUGIN = Path(__file__).parent / "prepared_plugin.cpp"
_AUTOSCHEDULER = "SdkPrepared"
# Defines `halide_sdk_1::reset_pipeline`; needs no other file than Halide.h.
PIPELINE_RESET_HEADER = Path(__file__).parent / "pipeline_reset.h"


@dataclass(frozen=True)
class PipelinePreparation:
    """What is done to a pipeline first.

    Attributes:
        plugin: see `build_preparation_plugin`.
        estimates: as `PipelineFacts.estimates` returns them; none leaves the generator's.
        takes_schedule_off: the generator's own schedule is taken off.
    """

    plugin: Path
    estimates: Mapping[str, str] = field(default_factory=dict)
    takes_schedule_off: bool = True

    def before(self, request: AutoschedulerRequest) -> AutoschedulerRequest:
        """Return the autoscheduler that prepares the pipeline and then runs the requested one."""
        parameters = {"prepared_for": request.name}
        if self.estimates:
            parameters["estimates"] = plugin_text(self.estimates)
        if not self.takes_schedule_off:
            parameters["keeps_schedule"] = "yes"
        return request.within(_AUTOSCHEDULER, self.plugin, parameters)


def build_preparation_plugin(compiler: HostCppCompiler) -> Path:
    """Build the plug-in of `PipelinePreparation`; cached.

    Raises:
        ToolchainError: no C++ compiler is installed.
    """
    return compiler.build_plugin(_PLUGIN)
