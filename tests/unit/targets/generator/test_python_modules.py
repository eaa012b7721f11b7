"""Which files beside a Python generator belong to it."""

from __future__ import annotations

from pathlib import Path

from halide_autotune.targets.generator.python_modules import modules_beside


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def test_modules_and_packages_are_found_through_each_other(tmp_path: Path) -> None:
    files = {
        "blur.py": "import os, helper\nfrom stages.first import run\nimport stages.more.last",
        "helper.py": "def late():\n    from tables import gain\nimport blur",
        "tables.py": "",
        "stages/__init__.py": "",
        "stages/first.py": "from . import second\nimport far",
        "stages/second.py": "",
        "stages/more/last.py": "",
        "far.py": "",
        "unrelated.py": "",
    }
    _write(tmp_path, files)
    found = [path.relative_to(tmp_path).as_posix() for path in modules_beside(tmp_path / "blur.py")]
    assert found == sorted(set(files) - {"blur.py", "unrelated.py"})


def test_what_python_cannot_read_is_left_to_python(tmp_path: Path) -> None:
    _write(tmp_path, {"blur.py": "import broken", "broken.py": "def ("})
    assert modules_beside(tmp_path / "blur.py") == [tmp_path / "broken.py"]
    _write(tmp_path, {"odd.py": "\0"})
    assert modules_beside(tmp_path / "odd.py") == []
