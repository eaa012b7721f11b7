"""The modules beside a Python generator that it imports, found without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

# Of the modules that `sdk ship` writes.
SCHEDULE_MODULE_SUFFIX = "_schedule.py"


def modules_beside(file: Path) -> list[Path]:
    """The modules and packages in a generator's folder that it imports, and those that these import.

    A package counts as a whole: which of its modules are imported may be decided while it runs.
    """
    found: dict[Path, None] = {}
    unread = [file]
    while unread:
        for name in _imported(unread.pop()):
            for path in _files_of(file.parent, name):
                if path != file and path not in found:
                    found[path] = None
                    unread.append(path)
    return sorted(found)


def _imported(file: Path) -> Iterator[str]:
    """The first part of each absolute import's name; relative ones stay in their package."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return  # Python says more about it when it imports the generator
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


def _files_of(folder: Path, name: str) -> list[Path]:
    if (folder / name).is_dir():
        return sorted((folder / name).rglob("*.py"))
    module = folder / f"{name}.py"
    return [module] if module.is_file() else []
