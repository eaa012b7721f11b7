"""The generators of examples/broken fail in the way that their comments promise."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.halide_install import HalideInstall
from tests.unit.examples.conftest import BuildCppGenerators

BROKEN = Path(__file__).parents[3] / "examples" / "broken"
REFUSED_BY_THE_AUTOSCHEDULER = {
    "missing_estimates": 'Need an estimate on dimension 0 of "output"',
    "manual_schedule": 'The Func "output" has scheduling directive(s) applied to it',
}
RUNNABLE_CPP = ["missing_estimates", "manual_schedule", "crashes", "hangs", "memory_hog"]


@pytest.fixture(scope="module")
def cpp_generator(build_cpp_generators: BuildCppGenerators) -> Path:
    """All broken C++ generators that compile, in one executable."""
    return build_cpp_generators([BROKEN / f"{name}.cpp" for name in RUNNABLE_CPP])


def command_of(language: str, name: str, cpp_generator: Path) -> list[str]:
    program = [sys.executable, str(BROKEN / f"{name}.py")] if language == "python" else [str(cpp_generator)]
    return [*program, "-g", name, "-e", "object", "target=host-no_runtime", "-o"]


@pytest.mark.parametrize("name", list(REFUSED_BY_THE_AUTOSCHEDULER))
@pytest.mark.parametrize("language", ["python", "cpp"])
def test_autoscheduler_refuses(
    language: str, name: str, cpp_generator: Path, halide_install: HalideInstall, tmp_path: Path
) -> None:
    search = ["-p", str(halide_install.plugin_path("Adams2019")), "autoscheduler=Adams2019"]
    command = [*command_of(language, name, cpp_generator), str(tmp_path), *search]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode != 0
    assert REFUSED_BY_THE_AUTOSCHEDULER[name] in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("language", ["python", "cpp"])
def test_hangs_until_it_is_killed(language: str, cpp_generator: Path, tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run([*command_of(language, "hangs", cpp_generator), str(tmp_path)], timeout=2)


@pytest.mark.parametrize("language", ["python", "cpp"])
def test_takes_all_memory_it_may_have(language: str, cpp_generator: Path, tmp_path: Path) -> None:
    limited = ["prlimit", f"--as={1024**3}", *command_of(language, "memory_hog", cpp_generator)]
    done = subprocess.run([*limited, str(tmp_path)], capture_output=True, text=True, timeout=240)
    assert done.returncode != 0
    assert "bad_alloc" in done.stderr or "MemoryError" in done.stderr


def test_crashes_with_a_segmentation_fault(cpp_generator: Path, tmp_path: Path) -> None:
    command = [*command_of("cpp", "crashes", cpp_generator), str(tmp_path)]
    assert subprocess.run(command, timeout=240).returncode == -signal.SIGSEGV


def test_compile_error_is_refused_by_the_compiler(build_cpp_generators: BuildCppGenerators) -> None:
    with pytest.raises(GeneratorError, match="error: .*x.* was not declared in this scope"):
        build_cpp_generators([BROKEN / "compile_error.cpp"])


def test_syntax_error_is_refused_by_python() -> None:
    source = BROKEN / "syntax_error.py"
    with pytest.raises(SyntaxError):
        compile(source.read_text(), str(source), "exec")
