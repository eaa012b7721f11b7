"""A package with entry points, as an installer would leave it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

EntryPoints = Mapping[str, Mapping[str, str]]


def write_package(folder: Path, name: str, groups: EntryPoints) -> None:
    """Write what says that a package is installed, and has these entry points (group → name → value)."""
    about = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = []
    for group, entries in groups.items():
        lines += [f"[{group}]", *(f"{entry} = {value}" for entry, value in entries.items())]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")


def install_package(
    folder: Path, name: str, groups: EntryPoints, modules: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Put a package with these entry points and modules (name → text) on the path."""
    write_package(folder, name, groups)
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text)
        monkeypatch.delitem(sys.modules, module, raising=False)  # an earlier test's
    monkeypatch.syspath_prepend(str(folder))
