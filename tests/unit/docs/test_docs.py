"""The documentation builds without a warning; its links lead somewhere, its code compiles, its messages are real."""

from __future__ import annotations

import ast
import functools
import inspect
import operator
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from markdown.extensions.toc import slugify

import sdk
from docs.command_pages import command_pages
from docs.draw_options import PAGE, page_with_options
from halide_autotune.sdk.main import make_application
from tests.document_blocks import DOCS, PAGES, PROJECT, blocks_of

PACKAGES = ("targets", "weights", "devices", "autotune_loop", "sdk")


def blocks(page: Path, language: str) -> Iterator[str]:
    return (block.body for block in blocks_of(page) if block.language == language)


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site" / "index.html").is_file()


def test_every_page_is_in_the_site() -> None:
    named = set(re.findall(r"(\S+\.md)$", (PROJECT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert named == {str(page.relative_to(DOCS)) for page in PAGES if page.is_relative_to(DOCS)}


def test_every_command_has_a_page() -> None:
    pages = command_pages()
    application: Any = typer.main.get_command(make_application())
    for name, command in application.commands.items():
        page = pages[f"commands/{name}.md"]
        for each in (command, *getattr(command, "commands", {}).values()):
            flags = [flag for parameter in each.params for flag in parameter.opts if flag.startswith("--")]
            assert [flag for flag in flags if flag not in page and flag != "--help"] == [], name


def test_every_public_name_has_a_place() -> None:
    text = "".join(page.read_text() for page in (DOCS / "python").glob("*.md"))
    assert sorted(re.findall(r"^::: sdk\.(\w+)$", text, re.MULTILINE)) == sorted(dir(sdk))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target
            if anchor:
                assert anchor in anchors(page.parent / target if target else page), f"{target}#{anchor}"


@functools.cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of the page's headings, as the site and GitHub make them."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return frozenset(slugify(heading, "-") for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE))


def test_python_and_toml_compile() -> None:
    for page in PAGES:
        for body in blocks(page, "python"):
            compile(body, page.name, "exec")
        for body in blocks(page, "toml"):
            tomllib.loads(body)


def test_the_tables_of_options_are_current() -> None:
    text = PAGE.read_text()
    assert page_with_options(text) == text
    assert "| `--budget TIME` | `budget_s` |" in text


def test_calls_of_the_sdk_fit_its_signatures() -> None:
    calls = list(sdk_calls())
    assert {name for name, _ in calls} >= {"autotune", "resume", "RunOptions.of"}
    for name, call in calls:
        known = inspect.signature(operator.attrgetter(name)(sdk))
        keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        known.bind(*call.args, **keywords)  # a TypeError says which does not fit
        if name == "RunOptions.of":
            sdk.RunOptions.of(**{keyword: ast.literal_eval(value) for keyword, value in keywords.items()})


def sdk_calls() -> Iterator[tuple[str, ast.Call]]:
    """Every call `sdk.NAME(…)` of the pages' Python and of their texts."""
    for page in PAGES:
        texts = [*blocks(page, "python"), *re.findall(r"`([^`\n]*\bsdk\.[\w.]+\([^`\n…]*\))`", page.read_text())]
        for node in (node for text in texts for node in ast.walk(ast.parse(text))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("sdk."):
                yield ast.unparse(node.func).removeprefix("sdk."), node


def test_the_messages_of_the_troubleshooting_page_are_the_sdks() -> None:
    text = (PROJECT / "docs" / "troubleshooting.md").read_text()
    messages = "\n".join(source_strings())
    cells = [row.split("|")[1] for row in text.splitlines() if row.startswith("| `")]
    phrases = [phrase for cell in cells for phrase in re.findall(r"`([^`]+)`", cell)]
    assert len(phrases) >= 15
    for phrase in phrases:
        assert phrase in messages, phrase


def source_strings() -> Iterator[str]:
    for package in PACKAGES:
        for path in (PROJECT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value


def test_the_glossary_is_in_alphabetical_order() -> None:
    words = re.findall(r"^\| ([\w -]+) \|", (DOCS / "glossary.md").read_text(), re.MULTILINE)[1:]
    assert len(words) > 50
    assert words == sorted(set(words))
