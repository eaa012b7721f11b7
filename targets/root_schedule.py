"""Everything at root, in plain loops: the schedule that compiles where others do not, for a last reference."""

from __future__ import annotations

from pathlib import Path

from targets.generator_run import AutoschedulerRequest
from targets.host_cpp_compiler import HostCppCompiler

_SOURCE = Path(__file__).parent / "root_plugin.cpp"
_NAME = "AllAtRoot"


def root_autoscheduler(compiler: HostCppCompiler) -> AutoschedulerRequest:
    """The autoscheduler, its plug-in compiled once and cached.

    Raises:
        ToolchainError: no C++ compiler is installed.
    """
    return AutoschedulerRequest(_NAME, (compiler.build_plugin(_SOURCE),))
