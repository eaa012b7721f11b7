"""The quick start and the generator page as a new user follows them: files saved, commands run in order."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from halide_autotune.sdk.settings import Settings

PROJECT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(?:(?:python|cpp) title=(\S+)|sh (run))\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A test has less patience than a reader, and no budget: beside others it may wait for minutes until it can time.
_SHORTER = ("--budget 1m --batch-size 8", "--num-batches 1 --batch-size 3")


@pytest.mark.slow
@pytest.mark.timeout(1800)  # it takes turns with all that others time on this machine
def test_the_pages_work_as_they_are_written(settings: Settings, tmp_path: Path) -> None:
    ran = []
    for page in ("index.md", "generators.md"):
        for title, run, body in _BLOCK.findall((PROJECT / "docs" / page).read_text()):
            if title:
                (tmp_path / title).write_text(body)
            elif run:
                script = body.replace(*_SHORTER)
                done = subprocess.run(
                    ["bash", "-euc", script],
                    cwd=tmp_path,
                    env={**settings.environment, "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"},
                    capture_output=True,
                    text=True,
                    check=False,
                )
                assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
                ran.append(script)
    assert len(ran) == 3 and "--num-batches 1" in ran[0]
    for made in ("tuned/blur-host-1/report.html", "build/blur.a", "built/blur.o"):
        assert (tmp_path / made).is_file(), made
