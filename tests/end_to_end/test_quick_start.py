"""The pages as a new user follows them: files saved, commands run in order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from halide_autotune.sdk.settings import Settings
from tests.document_blocks import DOCS, PAGES, Block, blocks_of

# A test has less patience than a reader, and no budget; and beside other tests no machine ever becomes quiet.
_SHORTER = (
    "--budget 1m --batch-size 8",
    "--num-batches 1 --batch-size 3 --pool-factor 1 --epochs 5 --play-off-turns 8 --quiet-patience 1s",
)
# They are followed one after the other in one folder, because the second goes on with the files of the first.
_START = [DOCS / "index.md", DOCS / "generators.md"]
_OTHERS = [page for page in PAGES if page not in _START and any(block.is_run for block in blocks_of(page))]


@pytest.mark.slow
def test_the_pages_work_as_they_are_written(settings: Settings, tmp_path: Path) -> None:
    ran = follow([block for page in _START for block in blocks_of(page)], settings, tmp_path)
    assert len(ran) == 3 and "--num-batches 1" in ran[0]
    for made in ("tuned/blur-host-1/report.html", "build/blur.a", "built/blur.o"):
        assert (tmp_path / made).is_file(), made


@pytest.mark.slow
@pytest.mark.parametrize("page", _OTHERS, ids=lambda page: page.stem)
def test_a_page_works_as_it_is_written(settings: Settings, tmp_path: Path, page: Path) -> None:
    generator = [block for block in blocks_of(DOCS / "index.md") if block.language == "python"]
    assert follow([*generator, *blocks_of(page)], settings, tmp_path)


def follow(blocks: list[Block], settings: Settings, folder: Path) -> list[str]:
    """Save what has a file's name, run what is to be run, and return the scripts that ran."""
    ran = []
    for block in blocks:
        if block.is_run:
            script = block.script.replace(*_SHORTER)
            run_script(script, settings, folder)
            ran.append(script)
        elif block.title and not block.is_shell:
            (folder / block.title).write_text(block.body)
    return ran


def run_script(script: str, settings: Settings, folder: Path) -> None:
    done = subprocess.run(
        ["bash", "-euc", script],
        cwd=folder,
        env={
            **settings.environment,
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "SDK_CONFIG_DIR": str(folder / "settings"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
