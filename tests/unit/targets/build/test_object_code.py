"""Two objects are the same code whatever their symbols are called, and another one where a byte of it differs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from halide_autotune.targets.build.object_code import is_same_code, loaded_content

SOURCE = "static const int table[] = {1, 2, 3}; int NAME(int i) { return table[i] * FACTOR; }\n"


@pytest.mark.toolchain
@pytest.mark.parametrize("bits", ["-m64", "-m32"])
def test_names_of_symbols_are_no_code(tmp_path: Path, bits: str) -> None:
    def made(name: str, factor: int) -> bytes:
        (tmp_path / "made.c").write_text(SOURCE)
        command = ["gcc", bits, "-c", "-O1", f"-DNAME={name}", f"-DFACTOR={factor}", "made.c", "-o", "made.o"]
        subprocess.run(command, cwd=tmp_path, check=True)
        return (tmp_path / "made.o").read_bytes()

    one = made("one", 5)
    assert len(loaded_content(one)) >= 2, "code and the table"
    assert one != made("another", 5) and is_same_code(one, made("another", 5))
    assert not is_same_code(one, made("one", 7))


def test_other_files_are_the_same_if_they_are_equal() -> None:
    assert is_same_code(b"", b"") and is_same_code(b"!<arch>", b"!<arch>")
    assert not is_same_code(b"!<arch>1", b"!<arch>2") and not is_same_code(b"", b"!<arch>")
