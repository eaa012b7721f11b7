from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from halide_autotune.targets.halide_install import HalideInstall, find_halide_install
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

BuildCppGenerators = Callable[[Sequence[Path]], Path]


@pytest.fixture(scope="session")
def halide_install() -> HalideInstall:
    return find_halide_install()


@pytest.fixture(scope="session")
def build_cpp_generators(cpp_compiler: HostCppCompiler, tmp_path_factory: pytest.TempPathFactory) -> BuildCppGenerators:
    """Compiles several sources into one generator executable: that costs little more than one of them alone."""
    folder = tmp_path_factory.mktemp("cpp_generators")

    def build(sources: Sequence[Path]) -> Path:
        together = folder / f"{sources[0].stem}_and_others.cpp"
        together.write_text("".join(f'#include "{source}"\n' for source in sources))
        return cpp_compiler.build_generator(together)

    return build
