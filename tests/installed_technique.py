"""A package with a technique, as pip would install it."""

from __future__ import annotations

from pathlib import Path

import pytest

from halide_autotune.autotune_loop.search.techniques.registry import PLUG_IN_GROUP


def install_technique(folder: Path, name: str, value: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a package with a module of that text, and an entry point with that name and value, on the path."""
    about = folder / "lab_techniques-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lab-techniques\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[{PLUG_IN_GROUP}]\n{name} = {value}\n")
    (folder / f"{value.partition(':')[0]}.py").write_text(module)
    monkeypatch.syspath_prepend(str(folder))
