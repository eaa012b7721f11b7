"""A network's static library, its header and its benchmark, from what it does and its compiled kernels."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from halide_autotune.autotune_loop.network.library.c_sources import WEIGHTS_FILE, CSources, c_name, c_sources
from halide_autotune.autotune_loop.network.library.steps import Steps
from halide_autotune.targets.build.executable import RUNNER_FLAGS, BuildTools, KernelObject, build_runtime_object
from halide_autotune.targets.errors import ToolchainError, os_error_as
from halide_autotune.targets.process.output_folder import output_folder
from halide_autotune.targets.process.scratch_folder import scratch_folder
from halide_autotune.targets.toolchain.static_library import make_static_library

_SOURCES_FOLDER = Path(__file__).parent
# It may become part of a shared library.
_FLAGS = (*RUNNER_FLAGS, "-fPIC")


@dataclass(frozen=True)
class NetworkLibrary:
    """The files of a network that is built.

    Attributes:
        name: what its C functions and files begin with.
        library: with all kernels, the weights and Halide's runtime.
        benchmark: times it on the target and writes what it computes.
        toolchain: describes what compiled and linked it.
        steps: what it does.
        not_tuned: the operators that a run has no schedule for, with their layers; they have the default one.
    """

    name: str
    library: Path
    header: Path
    benchmark: Path
    toolchain: str
    steps: Steps
    not_tuned: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """A JSON-ready form."""
        return {
            "name": self.name,
            "library": str(self.library),
            "header": str(self.header),
            "benchmark": str(self.benchmark),
            "toolchain": self.toolchain,
            "layers": len(self.steps.steps),
            "weights_bytes": len(self.steps.weights),
            "workspace_bytes": self.steps.memory.workspace_bytes,
            "least_workspace_bytes": self.steps.memory.least_bytes,
            "not_tuned": list(self.not_tuned),
        }


def build_library(
    steps: Steps,
    kernels: Sequence[KernelObject],
    halide_target: str,
    tools: BuildTools,
    output: Path,
    progress: Callable[[str], None] = lambda text: None,
) -> NetworkLibrary:
    """Put a network into the folder `output`: libNAME.a, NAME.h and NAME_bench. All files appear in it or none.

    Raises:
        ToolchainError: Halide, the C toolchain or the disk fails.
    """
    name, sources = c_name(steps.network.name), c_sources(steps, halide_target)
    with (
        os_error_as(ToolchainError, f"{output} cannot be written"),
        output_folder(output),
        scratch_folder("network", output) as folder,
    ):
        progress(f"compiling {len(steps.weights) / 1e6:,.1f} MB of weights and the calls of {len(kernels)} kernels")
        (folder / WEIGHTS_FILE).write_bytes(steps.weights)
        layers, weights, benchmark = _compiled(name, sources, folder, tools)
        runtime = build_runtime_object(halide_target, tools.cache, tools.halide)
        library, header, linked = folder / f"lib{name}.a", folder / f"{name}.h", folder / f"{name}_bench"
        make_static_library([layers, *(kernel.object_path for kernel in kernels), weights, runtime], library)
        progress("linking the benchmark")
        tools.toolchain.link([benchmark, *_shims(folder, tools), library], linked)
        for path in (library, header, linked):
            os.replace(path, output / path.name)
    placed = [output / path.name for path in (library, header, linked)]
    return NetworkLibrary(name, placed[0], placed[1], placed[2], tools.toolchain.describe(), steps)


def _compiled(name: str, sources: CSources, folder: Path, tools: BuildTools) -> list[Path]:
    """The objects of the layers, the weights and the benchmark; the header lies beside them."""
    (folder / f"{name}.h").write_text(sources.header)
    includes = [folder, _SOURCES_FOLDER, tools.halide.include_dir]
    made = []
    for what, text in (("layers", sources.layers), ("weights", sources.weights), ("bench", sources.benchmark)):
        source, compiled = folder / f"{name}_{what}.c", folder / f"{name}_{what}.o"
        source.write_text(text)
        tools.toolchain.compile_c(source, compiled, includes, _FLAGS)
        made.append(compiled)
    return made


def _shims(folder: Path, tools: BuildTools) -> list[Path]:
    """What Halide's runtime calls and the target's C library lacks."""
    made = []
    for source in tools.toolchain.shim_sources:
        made.append(folder / f"{source.stem}.o")
        tools.toolchain.compile_c(source, made[-1], [tools.halide.include_dir], _FLAGS)
    return made
