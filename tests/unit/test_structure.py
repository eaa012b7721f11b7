"""The shape of the product's code: how large a folder, a file, a function, a signature and a record may be."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).parents[2]
PACKAGES = ("targets", "weights", "devices", "autotune_loop", "sdk")
MOST_MODULES = 15
MOST_LINES = 420
MOST_FUNCTION_LINES = 60
MOST_PARAMETERS = 8
MOST_FIELDS = 12


def modules() -> Iterator[tuple[Path, ast.Module]]:
    for package in PACKAGES:
        for file in sorted((PROJECT / package).rglob("*.py")):
            yield file, ast.parse(file.read_text())


def name_of(file: Path, node: ast.AST) -> str:
    return f"{file.relative_to(PROJECT)}: {getattr(node, 'name', '')}"


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for file, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield name_of(file, node), node


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines without the docstring."""
    first = node.body[0]
    documented = ast.get_docstring(node) is not None
    described = (first.end_lineno or 0) - first.lineno + 1 if documented else 0
    return (node.end_lineno or 0) - node.lineno + 1 - described


def is_field(part: ast.AnnAssign) -> bool:
    """Whether it is one of what a record is made of: not of the class, not private, not filled in by itself."""
    private = isinstance(part.target, ast.Name) and part.target.id.startswith("_")
    own = part.value is not None and "init=False" in ast.unparse(part.value)
    return not (private or own or "ClassVar" in ast.unparse(part.annotation))


def test_a_folder_has_few_modules() -> None:
    counts = Counter(file.parent for file, _ in modules() if file.name != "__init__.py")
    assert {str(folder.relative_to(PROJECT)): n for folder, n in counts.items() if n > MOST_MODULES} == {}


def test_every_folder_says_what_it_is_for() -> None:
    folders = {file.parent for file, _ in modules()}
    assert [str(f.relative_to(PROJECT)) for f in sorted(folders) if not (f / "__init__.py").is_file()] == []
    empty = [name_of(file, tree) for file, tree in modules() if not ast.get_docstring(tree)]
    assert empty == []


def test_files_are_short() -> None:
    lines = {str(file.relative_to(PROJECT)): len(file.read_text().splitlines()) for file, _ in modules()}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


def test_functions_are_short() -> None:
    long = {name: length(node) for name, node in functions()}
    assert {name: count for name, count in long.items() if count > MOST_FUNCTION_LINES} == {}


def test_signatures_are_short() -> None:
    found = {}
    for name, node in functions():
        given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        count = len([argument for argument in given if argument.arg not in ("self", "cls")])
        if count > MOST_PARAMETERS:
            found[name] = count
    assert found == {}


def test_records_are_small() -> None:
    found = {}
    for file, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(d) for d in node.decorator_list):
                count = len([part for part in node.body if isinstance(part, ast.AnnAssign) and is_field(part)])
                if count > MOST_FIELDS:
                    found[name_of(file, node)] = count
    assert found == {}
