"""Everything at root, in plain loops: the schedule that compiles, and is right, where others do not and are not."""

from __future__ import annotations

from pathlib import Path

from targets.generator.run import AutoschedulerRequest
from targets.toolchain.host_cpp_compiler import HostCppCompiler

_SOURCE = Path(__file__).parent / "root_plugin.cpp"
ALL_AT_ROOT = "AllAtRoot"


def root_autoscheduler(compiler: HostCppCompiler) -> AutoschedulerRequest:
    """The autoscheduler, its plug-in compiled once and cached.

    Raises:
        ToolchainError: no C++ compiler is installed.
    """
    return AutoschedulerRequest(ALL_AT_ROOT, (compiler.build_plugin(_SOURCE),))
