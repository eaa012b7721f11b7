"""Techniques by name: real packages with entry points, beside those that are always there."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.search.techniques.registry import load_techniques
from halide_autotune.targets.errors import UsageError
from tests.installed_technique import install_technique

Install = Callable[[str, str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a package whose entry point says `value`, with a module of that text."""

    def installed(value: str, module: str) -> None:
        install_technique(tmp_path, "lab", value, module, monkeypatch)

    return installed


def test_those_that_are_always_there_need_no_package() -> None:
    assert list(load_techniques(["sampling", "sketches", "evolution"])) == ["sketches", "evolution"]


def test_a_package_adds_one(install: Install) -> None:
    install("lab_a:Lab", "class Lab:\n    def propose(self, population, count, source):\n        return iter(())\n")
    loaded = load_techniques(["evolution", "lab"])
    assert list(loaded) == ["evolution", "lab"] and type(loaded["lab"]).__module__ == "lab_a"


def test_an_unknown_name_says_which_there_are(install: Install) -> None:
    install("lab_b:Lab", "")
    with pytest.raises(UsageError, match="no technique 'evolutoin'; the nearest is 'evolution'") as caught:
        load_techniques(["evolutoin"])
    assert "sampling, sketches, evolution, annealing, pattern, lab" in caught.value.next_step


@pytest.mark.parametrize(
    ("module", "fault"),
    [
        ("import no_such_module", "cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'"),
        ("", "cannot be loaded: AttributeError"),
        (
            "class Lab:\n    def __init__(self):\n        raise OSError('no board')",
            "cannot be loaded: OSError: no board",
        ),
        ("class Lab: ...", "has no method `propose`"),
    ],
)
def test_one_that_cannot_be_used_is_named(install: Install, module: str, fault: str) -> None:
    name = f"lab_{zlib.crc32(module.encode())}"  # a module of its own each time
    install(f"{name}:Lab", module)
    with pytest.raises(UsageError, match="Technique 'lab', lab_") as caught:
        load_techniques(["lab"])
    assert fault in caught.value.message and "--technique" in caught.value.next_step
