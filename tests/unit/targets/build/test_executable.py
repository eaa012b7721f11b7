from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from halide_autotune.targets.build.executable import RUNNER_DIR, RUNNER_FLAGS, KernelObject
from halide_autotune.targets.errors import KernelLinkError, ToolchainError
from halide_autotune.targets.process.stop_signal import StopSignal
from tests.unit.targets.conftest import ARM, X86, Architecture, Runner, Workshop
from tests.unit.targets.runner_kernels import compile_kernel


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> KernelObject:
    return compile_kernel("scaled", X86.halide_target, tmp_path_factory.mktemp("objects"), "good")


def test_links_kernels_under_their_own_symbols(workshop: Workshop, tmp_path: Path) -> None:
    names = {"one": "blur_plain", "two": "scaled", "three": "blur_plain"}
    kernels = [compile_kernel(kernel, X86.halide_target, tmp_path, symbol) for symbol, kernel in names.items()]
    output = tmp_path / "new_folder" / "batch"
    executable = workshop.link(kernels, X86, output)
    content = output.read_bytes()
    assert executable.path == output
    assert executable.kernels == tuple(names)
    assert executable.sha256 == hashlib.sha256(content).hexdigest()
    assert [path.name for path in output.parent.iterdir()] == ["batch"]
    assert [event["name"] for event in Runner(executable, ())("--list").all("kernel")] == list(names)


def test_the_same_input_gives_the_same_file(workshop: Workshop, good: KernelObject, tmp_path: Path) -> None:
    first = workshop.link([good], X86, tmp_path / "first" / "batch")
    second = workshop.link([good], X86, tmp_path / "second" / "batch")
    assert first.sha256 == second.sha256


def test_a_link_that_is_stopped_leaves_nothing(workshop: Workshop, good: KernelObject, tmp_path: Path) -> None:
    stop = StopSignal()
    stop.set()
    with pytest.raises(ToolchainError, match="it was stopped"):
        workshop.link([good], X86, tmp_path / "made" / "batch", stop)
    assert list((tmp_path / "made").iterdir()) == []
    assert workshop.link([good], X86, tmp_path / "made" / "batch").kernels == ("good",), "the cache is sound"


@pytest.mark.parametrize("name", ["", "1st", "a-b", "a b", "über", "a;b", 'x"', "a\n", "x" * 300])
def test_names_are_c_identifiers(workshop: Workshop, good: KernelObject, tmp_path: Path, name: str) -> None:
    with pytest.raises(ToolchainError, match="is not a C identifier"):
        workshop.link([KernelObject(name, good.object_path)], X86, tmp_path / "batch")


def test_a_name_is_there_once(workshop: Workshop, good: KernelObject, tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="Two kernels of one executable are called 'good'"):
        workshop.link([good, good], X86, tmp_path / "batch")


def test_no_kernels(workshop: Workshop, tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="no kernel to link"):
        workshop.link([], X86, tmp_path / "batch")


def damage(good: KernelObject, kind: str, folder: Path) -> KernelObject:
    """An object that cannot be linked, beside the good one."""
    path = folder / "bad.o"
    content = good.object_path.read_bytes()
    if kind == "empty":
        path.touch()
    elif kind == "text":
        path.write_text("not an object")
    elif kind == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif kind == "garbled":
        # The section table is pointed at the middle of the code.
        path.write_bytes(content[:40] + (96).to_bytes(8, "little") + content[48:])
    elif kind == "other architecture":
        return compile_kernel("scaled", ARM.halide_target, folder, "bad")
    elif kind == "other symbol":
        path.write_bytes(compile_kernel("scaled", X86.halide_target, folder, "other").object_path.read_bytes())
    return KernelObject("bad", path)


@pytest.mark.parametrize("kind", ["missing", "empty", "text", "cut", "garbled", "other architecture", "other symbol"])
def test_a_bad_object_is_named(workshop: Workshop, good: KernelObject, tmp_path: Path, kind: str) -> None:
    bad = damage(good, kind, tmp_path)
    expected = re.escape(f"The object of kernel 'bad', {bad.object_path}, cannot be linked: ")
    with pytest.raises(KernelLinkError, match=expected) as found:
        workshop.link([good, bad], X86, tmp_path / "linked" / "batch")
    assert found.value.kernels == ("bad",)
    assert not list((tmp_path / "linked").iterdir() if (tmp_path / "linked").exists() else [])


def test_kernels_that_call_what_nothing_defines_are_named(
    workshop: Workshop, good: KernelObject, tmp_path: Path
) -> None:
    calling = []
    for name in ("first", "second"):
        source, made = tmp_path / f"{name}.c", tmp_path / f"{name}.o"
        calls = "extern void nowhere(void);"
        source.write_text(
            f"{calls} int {name}_argv(void **a) {{ nowhere(); return 0; }} void *{name}_metadata(void) {{ return 0; }}"
        )
        workshop.toolchain(X86).compile_c(source, made, [], ())
        calling.append(KernelObject(name, made))
    with pytest.raises(KernelLinkError, match="The kernels call nowhere, which nothing that is linked") as found:
        workshop.link([calling[0], good, calling[1]], X86, tmp_path / "linked" / "batch")
    assert found.value.kernels == ("first", "second")


@pytest.mark.parametrize("architecture", [X86, ARM], ids=lambda architecture: architecture.name)
def test_the_runner_compiles_without_warnings(workshop: Workshop, tmp_path: Path, architecture: Architecture) -> None:
    everything = tmp_path / "everything.c"
    sources = sorted(RUNNER_DIR.glob("*.c"))
    assert sources
    for source in sources:
        workshop.toolchain(architecture).compile_c(
            source,
            everything.with_suffix(".o"),
            [RUNNER_DIR, workshop.halide.include_dir],
            [*RUNNER_FLAGS, "-Werror"],
        )


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_the_runner_compiles_with_gcc_too(workshop: Workshop) -> None:
    command = ["gcc", "-std=c11", "-fsyntax-only", *RUNNER_FLAGS, "-Wshadow", "-Werror", f"-I{RUNNER_DIR}"]
    command += [f"-I{workshop.halide.include_dir}", *(str(path) for path in sorted(RUNNER_DIR.glob("*.c")))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
