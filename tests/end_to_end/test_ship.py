"""What was shipped in a product: built by a Makefile, by CMake and in Python, and run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import halide_autotune.sdk.main as sdk_main
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.halide_install import HalideInstall

WIDTH, HEIGHT = 1536, 1024
TARGET = "x86-64-linux-avx-avx2-f16c-fma-sse41"
LIBRARIES = ("-lpthread", "-ldl", "-lm")


def run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=1500, check=False, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(autouse=True)
def in_session_folders(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in settings.environment.items():
        monkeypatch.setenv(key, value)


@pytest.fixture(scope="module")
def product(examples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(examples / "shipping", tmp_path_factory.mktemp("product") / "shipping"))


@pytest.fixture(scope="module")
def expected() -> str:
    """What show_blur prints, by NumPy."""
    x, y = numpy.meshgrid(numpy.arange(WIDTH), numpy.arange(HEIGHT))
    padded = numpy.pad(((7 * x + 13 * y) % 1021).astype(numpy.uint16), 1, mode="edge")
    across = (padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]) // 3
    blurred = ((across[:-2] + across[1:-1] + across[2:]) // 3).astype(numpy.uint64)
    return f"{int((blurred * (x + 3 * y + 1).astype(numpy.uint64)).sum())}\n"


def test_what_is_committed_fits_its_generators(examples: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = examples / "shipping"
    for generator in ("blur.cpp", "blur.py"):
        check = ["ship", "--check", str(folder / "schedules"), "--generator", str(folder / generator)]
        assert sdk_main.main(check) == 0, capfd.readouterr().err


@pytest.mark.slow
def test_a_makefile_and_a_guard(product: Path, expected: str, tmp_path: Path, halide: HalideInstall) -> None:
    """The guarded kernel takes every size; the tuned one alone does not."""
    build = tmp_path / "make"
    run("make", f"PYTHON={sys.executable}", f"BUILD={build}", f"TARGET={TARGET}", cwd=product)
    assert run(build / "show_blur") == expected
    plain = tmp_path / "plain"
    (plain / "source").mkdir(parents=True)
    shutil.copy(product / "blur.cpp", plain / "source")
    shutil.copy(product / "Makefile", plain / "source")
    goal = plain / "blur.generator"
    run("make", f"PYTHON={sys.executable}", f"BUILD={plain}", goal, cwd=plain / "source")
    for generator, name in ((build / "blur.generator", "blur_tuned"), (goal, "blur_fallback")):
        emit = ["-e", "object,c_header", f"target={TARGET}" + ("-no_runtime" if name == "blur_fallback" else "")]
        run(generator, "-g", "blur", "-f", name, "-n", name, "-o", build, *emit)
    source = Path(__file__).parent / "guarded_blur.c"
    includes = [f"-I{product / 'schedules'}", f"-I{build}", f"-I{halide.include_dir}"]
    objects = [build / "blur_tuned.o", build / "blur_fallback.o"]
    program = tmp_path / "guarded"
    run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", source, *objects, *includes, "-o", program, *LIBRARIES)
    outcome = json.loads(run(program))
    assert outcome["wrong"] == 0
    assert outcome["tuned"] > 0 and outcome["fallback"] > 0


@pytest.mark.slow
def test_cmake(product: Path, expected: str, tmp_path: Path, halide: HalideInstall) -> None:
    cmake = Path(sys.executable).with_name("cmake")
    where = [f"-DCMAKE_PREFIX_PATH={halide.lib_dir / 'cmake'}", f"-DHalide_TARGET={TARGET}"]
    run(cmake, "-S", product, "-B", tmp_path / "build", *where)
    run(cmake, "--build", tmp_path / "build")
    assert run(tmp_path / "build" / "show_blur") == expected


def test_python(product: Path, tmp_path: Path) -> None:
    """The module is found beside the generator, and changes the code."""
    arguments = ["-g", "blur", "-e", "object", f"target={TARGET}-no_runtime"]
    run(sys.executable, product / "blur.py", *arguments, "-o", tmp_path)
    alone = Path(shutil.copy(product / "blur.py", tmp_path))
    (tmp_path / "alone").mkdir()
    run(sys.executable, alone, *arguments, "-o", tmp_path / "alone")
    tuned, plain = (tmp_path / "blur.o").read_bytes(), (tmp_path / "alone" / "blur.o").read_bytes()
    assert tuned[:4] == plain[:4] == b"\x7fELF" and tuned != plain
