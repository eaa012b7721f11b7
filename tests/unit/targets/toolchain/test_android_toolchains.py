"""Programs for Android: with an NDK's compiler, and with static musl where there is none. Both are run."""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from halide_autotune.targets.build.executable import BuildTools, Executable, build_runtime_object, link_executable
from halide_autotune.targets.errors import ToolchainError
from halide_autotune.targets.process.c_toolchain import CToolchain
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.toolchain.c_toolchain import describe_toolchains, fallback_notice, open_toolchain
from halide_autotune.targets.toolchain.ndk import NdkToolchain
from halide_autotune.targets.toolchain.zig import ZigToolchain
from tests.stand_in_ndk import API_LEVEL, EMULATOR, REVISION, TRIPLE, make_stand_in_ndk
from tests.unit.targets.conftest import Runner, Workshop
from tests.unit.targets.runner_kernels import compile_kernel

HALIDE_TARGET = "arm-64-android"
PHONE = load_profile("arm64-android")
STATIC_EMULATOR = EMULATOR[:1]

needs_emulator = pytest.mark.skipif(not shutil.which(EMULATOR[0]), reason=f"{EMULATOR[0]} is not installed")
needs_system_root = pytest.mark.skipif(not Path(EMULATOR[2]).is_dir(), reason=f"{EMULATOR[2]} is missing")


def first_use_is_slow(test: Callable[..., None]) -> Callable[..., None]:
    """The first static program of a session waits until zig has built musl: a minute of two cores."""
    marked: Callable[..., None] = pytest.mark.slow(test)
    return marked


@pytest.fixture(scope="module")
def ndk_root(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_stand_in_ndk(tmp_path_factory.mktemp("an ndk"), workshop.cache.root / "zig")


@pytest.fixture
def ndk(ndk_root: Path, workshop: Workshop) -> CToolchain:
    return open_toolchain(PHONE, workshop.cache.root, ndk_root)


@pytest.fixture
def fallback(workshop: Workshop) -> CToolchain:
    return open_toolchain(PHONE, workshop.cache.root, None)


def link(workshop: Workshop, toolchain: CToolchain, folder: Path) -> Executable:
    kernels = [compile_kernel(name, HALIDE_TARGET, folder) for name in ("blur_plain", "blur_tiled")]
    tools = BuildTools(workshop.halide, workshop.cache, toolchain)
    return link_executable(kernels, HALIDE_TARGET, tools, folder / "batch")


def elf_type_and_interpreter(program: Path) -> tuple[int, bool]:
    """2 is a program at a fixed place, 3 one that is position-independent; an interpreter makes it dynamic."""
    data = program.read_bytes()
    (kind,) = struct.unpack_from("<H", data, 16)
    (table,), (entry_bytes, entries) = struct.unpack_from("<Q", data, 32), struct.unpack_from("<HH", data, 54)
    kinds = [struct.unpack_from("<I", data, table + index * entry_bytes)[0] for index in range(entries)]
    return kind, 3 in kinds


def check_runs(executable: Executable, emulator: tuple[str, ...], folder: Path) -> None:
    run = Runner(executable, emulator)
    reference = folder / "reference.raw"
    assert run("--kernel", "blur_plain", "--write-reference", reference).exit_code == 0
    timed = run("--kernel", "blur_tiled", "--reference", reference, "--time", "--max-time-s", "0.05")
    assert timed.exit_code == 0, timed.stderr
    assert timed.one("compared")["accepted"] is True
    assert min(timed.one("timed")["repetitions_s"]) > 0


@needs_emulator
@needs_system_root
def test_with_an_ndk_programs_are_dynamic_and_run(ndk: CToolchain, workshop: Workshop, tmp_path: Path) -> None:
    executable = link(workshop, ndk, tmp_path)
    assert elf_type_and_interpreter(executable.path) == (3, True)
    check_runs(executable, EMULATOR, tmp_path)


@first_use_is_slow
@needs_emulator
def test_without_an_ndk_programs_are_static_and_run(fallback: CToolchain, workshop: Workshop, tmp_path: Path) -> None:
    executable = link(workshop, fallback, tmp_path)
    assert elf_type_and_interpreter(executable.path)[1] is False
    check_runs(executable, STATIC_EMULATOR, tmp_path)


@first_use_is_slow
@needs_emulator
def test_static_programs_know_the_number_of_cores_and_print(
    fallback: CToolchain, workshop: Workshop, tmp_path: Path
) -> None:
    source, program = tmp_path / "ask.c", tmp_path / "ask"
    source.write_text(
        "#include <stdio.h>\nint halide_host_cpu_count(void);\nvoid halide_print(void *context, const char *text);\n"
        'int main(void) {\n    printf("%d\\n", halide_host_cpu_count());\n    halide_print(NULL, "hello 100%\\n");\n'
        "    return 0;\n}\n"
    )
    objects = [tmp_path / "ask.o", build_runtime_object(HALIDE_TARGET, workshop.cache, workshop.halide)]
    fallback.compile_c(source, objects[0], [])
    for shim in fallback.shim_sources:
        objects.append(tmp_path / f"{shim.stem}.o")
        fallback.compile_c(shim, objects[-1], [], ["-Wall", "-Wextra", "-Werror"])
    fallback.link(objects, program)
    done = subprocess.run([*STATIC_EMULATOR, str(program)], capture_output=True, text=True, timeout=240, check=True)
    assert int(done.stdout) == len(os.sched_getaffinity(0))
    assert "hello 100%" in done.stderr


@first_use_is_slow
@needs_emulator
def test_halides_linux_runtime_links_with_musl_too(fallback: CToolchain, workshop: Workshop, tmp_path: Path) -> None:
    kernels = [compile_kernel("blur_tiled", "arm-64-linux", tmp_path)]
    tools = BuildTools(workshop.halide, workshop.cache, fallback)
    executable = link_executable(kernels, "arm-64-linux", tools, tmp_path / "batch")
    timed = Runner(executable, STATIC_EMULATOR)("--kernel", "blur_tiled", "--time", "--max-time-s", "0.01")
    assert timed.exit_code == 0, timed.stderr


def _libraries(folder: Path) -> Iterator[tuple[float, bytes]]:
    """The C libraries below a folder and when they were built; what another process moves away meanwhile is none."""
    for place, _, files in os.walk(folder):  # passes over folders that vanish, which Path.rglob does not
        if "libc.a" in files:
            with contextlib.suppress(FileNotFoundError):
                path = Path(place) / "libc.a"
                yield path.stat().st_mtime, path.read_bytes()


@first_use_is_slow
def test_musl_is_built_once_wherever_zig_is_started(
    fallback: CToolchain, workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.c").write_text("int main(void) { return 0; }\n")
    fallback.compile_c(tmp_path / "a.c", tmp_path / "a.o", [])
    monkeypatch.chdir(tmp_path)
    fallback.link([tmp_path / "a.o"], tmp_path / "a")
    linked = (tmp_path / "a").read_bytes()
    # zig's own files lie below this folder.
    monkeypatch.chdir(sys.prefix)
    started_at = time.time()
    fallback.link([tmp_path / "a.o"], tmp_path / "a")
    # Other tests may build other targets' meanwhile, but none the same twice.
    libraries = list(_libraries(workshop.cache.root / "zig"))
    before = {content for built_at, content in libraries if built_at <= started_at}
    assert not [content for built_at, content in libraries if built_at > started_at and content in before]
    assert (tmp_path / "a").read_bytes() == linked


def test_only_musl_gets_company(ndk: CToolchain, fallback: CToolchain, tmp_path: Path) -> None:
    assert [source.name for source in fallback.shim_sources] == ["musl_shims.c"]
    assert ndk.shim_sources == ()
    assert ZigToolchain("aarch64-linux-gnu.2.28", tmp_path).shim_sources == ()


def test_the_profile_and_the_ndk_decide(workshop: Workshop, ndk_root: Path) -> None:
    cache = workshop.cache.root
    assert isinstance(open_toolchain(PHONE, cache, ndk_root), NdkToolchain)
    fallback = open_toolchain(PHONE, cache, None)
    assert isinstance(fallback, ZigToolchain) and fallback.triple == "aarch64-linux-musl"
    board = load_profile("arm64")
    linux = open_toolchain(board, cache, ndk_root)
    assert isinstance(linux, ZigToolchain) and linux.triple == board.toolchain.triple


def test_what_is_said_of_the_choice(workshop: Workshop, ndk: CToolchain, ndk_root: Path) -> None:
    cache, board = workshop.cache.root, load_profile("arm64")
    assert ndk.describe().startswith(f"Android NDK {REVISION}, clang ")
    assert ndk.describe().endswith(f" for {TRIPLE}{API_LEVEL}, bionic, dynamic")
    assert str(ndk_root) not in ndk.describe()
    both = describe_toolchains(PHONE, cache, ndk_root)
    assert ndk.describe() in both and "for aarch64-linux-musl, static" in both
    alone = describe_toolchains(PHONE, cache, None)
    assert "for aarch64-linux-musl, static" in alone and "ANDROID_NDK_ROOT" in alone
    assert describe_toolchains(board, cache, ndk_root) == open_toolchain(board, cache, None).describe()
    assert "ANDROID_NDK_ROOT" in fallback_notice(PHONE, None, runs_here=False)
    for root in (None, ndk_root):
        assert "do not run on this machine" in fallback_notice(PHONE, root, runs_here=True)
    assert fallback_notice(PHONE, ndk_root, runs_here=False) == ""
    assert fallback_notice(board, None, runs_here=True) == ""


def test_fingerprints_differ(ndk: CToolchain, fallback: CToolchain, ndk_root: Path, tmp_path: Path) -> None:
    newer = NdkToolchain(ndk_root, TRIPLE, API_LEVEL, tmp_path)
    assert newer.fingerprint() == ndk.fingerprint()
    assert ndk.fingerprint() != fallback.fingerprint()
    assert f"{TRIPLE}{API_LEVEL}" in ndk.fingerprint() and REVISION in ndk.fingerprint()


@pytest.mark.parametrize("kind", ["missing", "empty", "other level", "not executable"])
def test_a_broken_ndk_names_the_variable(ndk_root: Path, tmp_path: Path, kind: str) -> None:
    root, api_level = tmp_path / "ndk", API_LEVEL
    if kind == "empty":
        root.mkdir()
    elif kind == "other level":
        root, api_level = ndk_root, 99
    elif kind == "not executable":
        shutil.copytree(ndk_root, root)
        NdkToolchain(root, TRIPLE, API_LEVEL, tmp_path).compiler.chmod(0o644)
    broken = NdkToolchain(root, TRIPLE, api_level, tmp_path)
    for use in (broken.version, broken.fingerprint, broken.describe):
        with pytest.raises(ToolchainError, match="cannot be used") as caught:
            use()
        assert "\n" not in str(caught.value)
        assert str(root) in caught.value.message
        assert "ANDROID_NDK_ROOT" in caught.value.next_step


@pytest.mark.parametrize("script", ["#!/bin/sh\necho no such machine >&2\nexit 126\n", "not a program", "#!/nowhere\n"])
def test_a_compiler_that_does_not_run(ndk_root: Path, tmp_path: Path, script: str) -> None:
    root = tmp_path / "ndk"
    shutil.copytree(ndk_root, root)
    broken = NdkToolchain(root, TRIPLE, API_LEVEL, tmp_path)
    broken.compiler.write_text(script)
    with pytest.raises(ToolchainError, match="cannot be run") as caught:
        broken.describe()
    assert "\n" not in str(caught.value) and "ANDROID_NDK_ROOT" in caught.value.next_step


def test_an_ndk_without_a_version_is_one(ndk_root: Path, tmp_path: Path) -> None:
    root = tmp_path / "ndk"
    shutil.copytree(ndk_root, root)
    for properties in (b"", b"\xff" * 1000, b"Pkg.Revision = ../../etc\n"):
        (root / "source.properties").write_bytes(properties)
        assert NdkToolchain(root, TRIPLE, API_LEVEL, tmp_path).version().startswith("clang ")


def test_errors_of_the_ndks_compiler_are_passed_on(ndk: CToolchain, tmp_path: Path) -> None:
    source, compiled = tmp_path / "a.c", tmp_path / "a.o"
    source.write_text("int main(void) { return nothing_known; }\n")
    with pytest.raises(ToolchainError, match=r"(?s)a\.c does not compile for aarch64-linux-android.*nothing_known"):
        ndk.compile_c(source, compiled, [])
    source.write_text("int elsewhere(void);\nint main(void) { return elsewhere(); }\n")
    ndk.compile_c(source, compiled, [])
    with pytest.raises(ToolchainError, match=r"(?s)program does not link.*undefined symbol: elsewhere"):
        ndk.link([compiled], tmp_path / "program")
