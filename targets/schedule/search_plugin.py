"""Searching without compiling: an autoscheduler plug-in of our own that stops the generator after the search."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from targets.generator.run import AutoschedulerRequest
from targets.toolchain.host_cpp_compiler import HostCppCompiler

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
