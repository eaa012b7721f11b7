from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from targets.errors import ToolchainError
from targets.zig_toolchain import ZigToolchain
from tests.unit.targets.conftest import X86, Workshop


@pytest.fixture
def toolchain(workshop: Workshop) -> ZigToolchain:
    return workshop.toolchain(X86)


def test_compiles_and_links(toolchain: ZigToolchain, tmp_path: Path) -> None:
    source, compiled, program = tmp_path / "answer.c", tmp_path / "answer.o", tmp_path / "answer"
    (tmp_path / "answer.h").write_text("#define ANSWER 42\n")
    # The shift is undefined: a sanitizer would end the program.
    source.write_text(
        '#include "answer.h"\nint main(int argc, char **argv) {\n'
        "    (void)argv;\n    volatile int by = 33 + argc;\n    volatile int none = 1 << by;\n"
        "    (void)none;\n    return ANSWER;\n}\n"
    )
    toolchain.compile_c(source, compiled, [tmp_path], ["-Wall", "-Wextra", "-Werror"])
    toolchain.link([compiled], program)
    assert os.access(program, os.X_OK)
    assert subprocess.run([str(program)], check=False).returncode == 42


def test_keeps_to_its_cache_folder(workshop: Workshop, tmp_path: Path) -> None:
    folder = tmp_path / "zig"
    toolchain = ZigToolchain("x86_64-linux-musl", folder)
    source = tmp_path / "empty.c"
    source.write_text("int nothing;\n")
    toolchain.compile_c(source, tmp_path / "empty.o", [])
    assert folder.is_dir()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.c", "empty.o", "zig"]


def test_a_compiler_error_is_passed_on(toolchain: ZigToolchain, tmp_path: Path) -> None:
    source = tmp_path / "broken.c"
    source.write_text("int main(void) { return nothing_known; }\n")
    with pytest.raises(ToolchainError, match=r"(?s)broken\.c does not compile for x86_64.*nothing_known"):
        toolchain.compile_c(source, tmp_path / "broken.o", [])
    assert not (tmp_path / "broken.o").exists()


def test_a_linker_error_is_passed_on(toolchain: ZigToolchain, tmp_path: Path) -> None:
    source, compiled = tmp_path / "open.c", tmp_path / "open.o"
    source.write_text("int elsewhere(void);\nint main(void) { return elsewhere(); }\n")
    toolchain.compile_c(source, compiled, [])
    with pytest.raises(ToolchainError, match=r"(?s)program does not link.*undefined symbol: elsewhere"):
        toolchain.link([compiled], tmp_path / "program")


def test_the_fingerprint_tells_toolchains_apart(tmp_path: Path) -> None:
    plain = ZigToolchain("x86_64-linux-musl", tmp_path)
    other = ZigToolchain("aarch64-linux-musl", tmp_path)
    tuned = ZigToolchain("x86_64-linux-musl", tmp_path, extra_flags=("-mcpu=haswell",))
    assert len({plain.fingerprint(), other.fingerprint(), tuned.fingerprint()}) == 3
    assert plain.version() in plain.fingerprint()
    assert plain.python == Path(sys.executable)


@pytest.mark.parametrize("python", ["/usr/bin/false", "/nowhere/python"])
def test_a_missing_toolchain_says_how_to_install(tmp_path: Path, python: str) -> None:
    toolchain = ZigToolchain("x86_64-linux-musl", tmp_path, python=Path(python))
    with pytest.raises(ToolchainError, match=f"Install it with: {python} -m pip install ziglang"):
        toolchain.compile_c(tmp_path / "a.c", tmp_path / "a.o", [])
