"""The generators of examples/broken fail in the way that their comments promise."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import halide as hl
import pytest

BROKEN = Path(__file__).parents[3] / "examples" / "broken"
INSTALL = Path(hl.install_dir())
ADAMS2019 = ["-p", str(INSTALL / "lib64" / "libautoschedule_adams2019.so"), "autoscheduler=Adams2019"]
REFUSED_BY_THE_AUTOSCHEDULER = {
    "missing_estimates": 'Need an estimate on dimension 0 of "output"',
    "manual_schedule": 'The Func "output" has scheduling directive(s) applied to it',
}
RUNNABLE_CPP = ["missing_estimates", "manual_schedule", "crashes", "hangs", "memory_hog"]


@pytest.fixture(scope="module")
def cpp_generator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All broken C++ generators that compile, in one binary."""
    folder = tmp_path_factory.mktemp("broken")
    source, binary = folder / "broken.cpp", folder / "broken.generator"
    source.write_text("".join(f'#include "{BROKEN / name}.cpp"\n' for name in RUNNABLE_CPP))
    libraries = [INSTALL / "lib64" / "libHalide_GenGen.a", INSTALL / "lib64" / "libHalide.so"]
    command = ["g++", "-std=c++17", "-fno-rtti", "-I", INSTALL / "include", source, *libraries, "-o", binary]
    command += [f"-Wl,-rpath,{INSTALL / 'lib64'}", "-ldl", "-lpthread", "-rdynamic"]
    subprocess.run(command, check=True, timeout=120)
    return binary


def command_of(language: str, name: str, cpp_generator: Path) -> list[str]:
    program = [sys.executable, str(BROKEN / f"{name}.py")] if language == "python" else [str(cpp_generator)]
    return [*program, "-g", name, "-e", "object", "target=host-no_runtime", "-o"]


@pytest.mark.parametrize("name", list(REFUSED_BY_THE_AUTOSCHEDULER))
@pytest.mark.parametrize("language", ["python", "cpp"])
def test_autoscheduler_refuses(language: str, name: str, cpp_generator: Path, tmp_path: Path) -> None:
    command = [*command_of(language, name, cpp_generator), str(tmp_path), *ADAMS2019]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert REFUSED_BY_THE_AUTOSCHEDULER[name] in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("language", ["python", "cpp"])
def test_hangs_until_it_is_killed(language: str, cpp_generator: Path, tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run([*command_of(language, "hangs", cpp_generator), str(tmp_path)], timeout=2)


@pytest.mark.parametrize("language", ["python", "cpp"])
def test_takes_all_memory_it_may_have(language: str, cpp_generator: Path, tmp_path: Path) -> None:
    limited = ["prlimit", f"--as={2 * 1024**3}", *command_of(language, "memory_hog", cpp_generator)]
    done = subprocess.run([*limited, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "bad_alloc" in done.stderr or "MemoryError" in done.stderr


def test_crashes_with_a_segmentation_fault(cpp_generator: Path, tmp_path: Path) -> None:
    command = [*command_of("cpp", "crashes", cpp_generator), str(tmp_path)]
    assert subprocess.run(command, timeout=60).returncode == -signal.SIGSEGV


def test_compile_error_is_refused_by_the_compiler() -> None:
    source = BROKEN / "compile_error.cpp"
    command = ["g++", "-std=c++17", "-fsyntax-only", "-I", INSTALL / "include", source]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "not declared in this scope" in done.stderr


def test_syntax_error_is_refused_by_python() -> None:
    source = BROKEN / "syntax_error.py"
    with pytest.raises(SyntaxError):
        compile(source.read_text(), str(source), "exec")
